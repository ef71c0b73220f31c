"""RMS norm on a GPU (Triton): a row a program."""

import torch
import triton
from torch import Tensor

from engine.kernels.operator import Variant
from engine.kernels.triton_source import kernels

WIDEST = 65536  # numbers of a row that one program can hold


def rms_norm(x_TC: Tensor, weight_C: Tensor, eps: float) -> Tensor:
    """x / √(mean(x²) + eps) · weight over the last axis, computed in float32, in x's type; any
    leading axes."""
    x = x_TC.contiguous()
    y = torch.empty_like(x)
    width = x.shape[-1]
    module = kernels("engine.kernels.norm.rows_triton", not x.is_cuda)
    grid = (x.numel() // width,)
    if grid[0]:
        block = triton.next_power_of_2(width)
        module.rms_norm[grid](x, weight_C.contiguous(), y, width, eps, BLOCK=block)
    return y


VARIANT = Variant(
    name="rows",
    about="a program a row",
    device="cuda",
    call=rms_norm,
    dtypes=("float32", "bfloat16", "float16"),
    rank=2,
    interpreted=True,
    refuses=lambda given: (
        f"takes rows of at most {WIDEST} numbers" if given["x_TC"].shape[-1] > WIDEST else ""
    ),
)
