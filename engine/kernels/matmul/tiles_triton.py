"""Product of rows with a weight: one program a tile of outputs, stepping along k."""

import triton
import triton.language as tl


@triton.jit
def matmul(
    x, weight, y, rows, outputs, inputs, x_stride, weight_stride,
    WIDE: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
    GROUP: tl.constexpr,
):  # fmt: skip
    # Programs walk down GROUP row tiles before the next column, so that both operands stay in L2.
    tiles_m, tiles_n = tl.cdiv(rows, BLOCK_M), tl.cdiv(outputs, BLOCK_N)
    program, band = tl.program_id(0), GROUP * tiles_n
    first = program // band * GROUP
    height = tl.minimum(tiles_m - first, GROUP)
    tile_m = first + program % band % height
    tile_n = program % band // height
    m = tile_m * BLOCK_M + tl.arange(0, BLOCK_M)
    n = tile_n * BLOCK_N + tl.arange(0, BLOCK_N)
    k = tl.arange(0, BLOCK_K)
    x_at = x + m.to(tl.int64)[:, None] * x_stride + k[None, :]
    w_at = weight + n.to(tl.int64)[None, :] * weight_stride + k[:, None]
    total = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for step in range(tl.cdiv(inputs, BLOCK_K)):
        inside = step * BLOCK_K + k < inputs
        left = tl.load(x_at, mask=(m < rows)[:, None] & inside[None, :], other=0.0)
        right = tl.load(w_at, mask=inside[:, None] & (n < outputs)[None, :], other=0.0)
        if WIDE:
            left, right = left.to(tl.float32), right.to(tl.float32)
        total = tl.dot(left, right, total, input_precision="ieee")
        x_at += BLOCK_K
        w_at += BLOCK_K
    y_at = y + m.to(tl.int64)[:, None] * outputs + n[None, :]
    tl.store(y_at, total, mask=(m < rows)[:, None] & (n < outputs)[None, :])


SIZES = {"rows": "i32", "outputs": "i32", "inputs": "i32", "x_stride": "i32"}
COMPILES = (
    (
        "matmul",
        {"x": "*bf16", "weight": "*bf16", "y": "*bf16", **SIZES, "weight_stride": "i32"},
        {"WIDE": False, "BLOCK_M": 128, "BLOCK_N": 128, "BLOCK_K": 64, "GROUP": 8, "num_warps": 8},
    ),
    (
        "matmul",
        {"x": "*fp32", "weight": "*bf16", "y": "*fp32", **SIZES, "weight_stride": "i32"},
        {"WIDE": True, "BLOCK_M": 16, "BLOCK_N": 64, "BLOCK_K": 64, "GROUP": 8},
    ),
)
