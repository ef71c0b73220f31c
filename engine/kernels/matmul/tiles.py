"""Product on a GPU (Triton): one program a tile of outputs.

Half-precision operands of one type are multiplied on matrix units; float32 or mixed ones are
widened and multiplied in full float32, which is exact and slower.
"""

import torch
import triton
from torch import Tensor

from engine.kernels.matmul.pack import Packed
from engine.kernels.operator import Arguments, Variant
from engine.kernels.triton_source import kernels

GROUP = 8  # row tiles that share a column of the weight in L2
SMALLEST = 16  # rows and columns of a matrix unit's operand


def refuses(given: Arguments) -> str:
    """Weights packed for the processor."""
    weight = given["weight_NK"]
    return "takes a weight that is not packed" if isinstance(weight, Packed) else ""


def tile(rows: int, wide: bool) -> tuple[int, int, int, int]:
    """(rows, outputs, inputs, warps) of a tile: flat for few rows, which are bound by memory."""
    if rows <= SMALLEST:
        return SMALLEST, 64, 64, 4
    if rows <= 64 or wide:
        return 64, 64, 32 if wide else 64, 4
    return 128, 128, 64, 8


def matmul(x_MK: Tensor, weight_NK: Tensor) -> Tensor:
    """y_MN = x · Wᵀ in x's type, added up in float32."""
    x, weight = _rows(x_MK), _rows(weight_NK)
    rows, inputs = x.shape
    outputs = weight.shape[0]
    y = torch.empty(rows, outputs, dtype=x.dtype, device=x.device)
    if not rows * outputs:
        return y
    wide = x.dtype != weight.dtype or x.dtype == torch.float32
    block_m, block_n, block_k, warps = tile(rows, wide)
    grid = (triton.cdiv(rows, block_m) * triton.cdiv(outputs, block_n),)
    kernels("engine.kernels.matmul.tiles_triton", not x.is_cuda).matmul[grid](
        x, weight, y, rows, outputs, inputs, x.stride(0), weight.stride(0),
        WIDE=wide or not x.is_cuda, BLOCK_M=block_m, BLOCK_N=block_n, BLOCK_K=block_k,
        GROUP=GROUP, num_warps=warps,
    )  # fmt: skip
    return y


def _rows(matrix: Tensor) -> Tensor:
    """The matrix with its rows contiguous, which the kernel steps along."""
    return matrix if matrix.stride(-1) == 1 else matrix.contiguous()


VARIANT = Variant(
    name="tiles",
    about="a program a tile; half precision on matrix units, the rest in full float32",
    device="cuda",
    call=matmul,
    dtypes=("float32", "bfloat16", "float16"),
    rank=2,
    interpreted=True,
    refuses=refuses,
)
