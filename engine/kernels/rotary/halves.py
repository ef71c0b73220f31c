"""Rotation of head halves on a GPU (Triton): a program some heads of a token."""

import torch
import triton
from torch import Tensor

from engine.kernels.operator import Variant
from engine.kernels.triton_source import kernels

NUMBERS = 4096  # a half each, of the heads of one program


def rotate(x_THD: Tensor, cos_TF: Tensor, sin_TF: Tensor) -> Tensor:
    """Dimension i turned with dimension i + D/2 by the token's angle, computed in float32; a new
    tensor of x's type."""
    x = x_THD if x_THD.stride(-1) == 1 else x_THD.contiguous()
    tokens, heads, dim = x.shape
    y = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    if y.numel():
        wide = triton.next_power_of_2(dim // 2)
        each = min(triton.next_power_of_2(heads), max(1, NUMBERS // wide))
        grid = (tokens, triton.cdiv(heads, each))
        kernels("engine.kernels.rotary.halves_triton", not x.is_cuda).rotate[grid](
            x, cos_TF.contiguous(), sin_TF.contiguous(), y, heads, dim // 2,
            x.stride(0), x.stride(1), HEADS=each, HALF=wide,
        )  # fmt: skip
    return y


VARIANT = Variant(
    name="halves",
    about="a program some heads of a token",
    device="cuda",
    call=rotate,
    dtypes=("float32", "bfloat16", "float16"),
    interpreted=True,
)
