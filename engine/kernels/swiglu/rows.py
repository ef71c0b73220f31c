"""SwiGLU on a GPU (Triton): a program a stretch of a row; gate and up may lie side by side."""

import torch
import triton
from torch import Tensor

from engine.kernels.operator import Variant
from engine.kernels.triton_source import kernels

BLOCK = 4096  # numbers of a row that one program takes


def swiglu(gate_TC: Tensor, up_TC: Tensor) -> Tensor:
    """gate · sigmoid(gate) · up, computed in float32; a new tensor of the same shape and type."""
    gate, up = _rows(gate_TC), _rows(up_TC)
    y = torch.empty(gate.shape, dtype=gate.dtype, device=gate.device)
    if y.numel():
        rows, width = gate.shape
        module = kernels("engine.kernels.swiglu.rows_triton", not gate.is_cuda)
        grid = (rows, triton.cdiv(width, BLOCK))
        module.swiglu[grid](gate, up, y, width, gate.stride(0), up.stride(0), BLOCK=BLOCK)
    return y.view(gate_TC.shape)


def _rows(x: Tensor) -> Tensor:
    """As a matrix whose rows are contiguous; a view where it can be."""
    flat = x if x.dim() == 2 else x.reshape(-1, x.shape[-1])
    return flat if flat.stride(-1) == 1 else flat.contiguous()


VARIANT = Variant(
    name="rows",
    about="a program a stretch of a row",
    device="cuda",
    call=swiglu,
    dtypes=("float32", "bfloat16", "float16"),
    interpreted=True,
)
