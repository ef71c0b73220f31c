"""SwiGLU: one program a stretch of a row."""

import triton
import triton.language as tl


@triton.jit
def swiglu(gate, up, y, width, gate_stride, up_stride, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    column = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = column < width
    g = tl.load(gate + row * gate_stride + column, mask=inside, other=0.0).to(tl.float32)
    u = tl.load(up + row * up_stride + column, mask=inside, other=0.0).to(tl.float32)
    tl.store(y + row * width + column, g / (1.0 + tl.exp(-g)) * u, mask=inside)


COMPILES = (
    (
        "swiglu",
        {
            **dict.fromkeys(("gate", "up", "y"), "*bf16"),
            **dict.fromkeys(("width", "gate_stride", "up_stride"), "i32"),
        },
        {"BLOCK": 4096},
    ),
)
