"""Rotation of head halves: one program some heads of a token."""

import triton
import triton.language as tl


@triton.jit
def rotate(
    x, cos, sin, y, heads, half, token_stride, head_stride,
    HEADS: tl.constexpr, HALF: tl.constexpr,
):  # fmt: skip
    token = tl.program_id(0).to(tl.int64)
    head = tl.program_id(1) * HEADS + tl.arange(0, HEADS)
    i = tl.arange(0, HALF)
    turns = i < half
    c = tl.load(cos + token * half + i, mask=turns, other=0.0).to(tl.float32)[None, :]
    s = tl.load(sin + token * half + i, mask=turns, other=0.0).to(tl.float32)[None, :]
    inside = (head < heads)[:, None] & turns[None, :]
    here = x + token * token_stride + head[:, None] * head_stride + i[None, :]
    a = tl.load(here, mask=inside, other=0.0).to(tl.float32)
    b = tl.load(here + half, mask=inside, other=0.0).to(tl.float32)
    there = y + (token * heads + head[:, None]) * 2 * half + i[None, :]
    tl.store(there, a * c - b * s, mask=inside)
    tl.store(there + half, b * c + a * s, mask=inside)


COMPILES = (
    (
        "rotate",
        {
            **dict.fromkeys(("x", "cos", "sin", "y"), "*bf16"),
            **dict.fromkeys(("heads", "half", "token_stride", "head_stride"), "i32"),
        },
        {"HEADS": 32, "HALF": 64},
    ),
)
