"""RMS norm of rows: one program a row, the row in one block."""

import triton
import triton.language as tl


@triton.jit
def rms_norm(x, weight, y, width, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    columns = tl.arange(0, BLOCK)
    inside = columns < width
    values = tl.load(x + row * width + columns, mask=inside, other=0.0).to(tl.float32)
    scale = tl.rsqrt(tl.sum(values * values, axis=0) / width + eps)
    by = tl.load(weight + columns, mask=inside, other=0.0).to(tl.float32)
    tl.store(y + row * width + columns, values * scale * by, mask=inside)


COMPILES = (
    (
        "rms_norm",
        {"x": "*bf16", "weight": "*bf16", "y": "*bf16", "width": "i32", "eps": "fp32"},
        {"BLOCK": 4096},
    ),
)
