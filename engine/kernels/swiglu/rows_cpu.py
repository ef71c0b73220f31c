"""SwiGLU in place on the gate, a slice a task (numba)."""

import numpy as np
import torch
from numba import prange
from torch import Tensor

from engine.kernels.compiled import kernel
from engine.kernels.lanes import LANES
from engine.kernels.operator import Variant
from engine.kernels.rows import gate

SLICE = 256  # vectors a task works on


@kernel
def _swiglu(x, y, vectors):
    for part in prange((vectors + SLICE - 1) // SLICE):
        first = np.int64(part) * SLICE
        gate(x, first * LANES, y, first * LANES, min(SLICE, vectors - first))


def swiglu(gate_TC: Tensor, up_TC: Tensor) -> Tensor:
    """gate · sigmoid(gate) · up in float32; a new tensor of the same shape."""
    size = gate_TC.numel()
    vectors = -(-size // LANES)
    x, y = np.zeros((2, vectors * LANES), np.float32)
    x[:size] = gate_TC.detach().float().reshape(-1).numpy()
    y[:size] = up_TC.detach().float().reshape(-1).numpy()
    _swiglu(x, y, vectors)
    return torch.from_numpy(x[:size].reshape(tuple(gate_TC.shape)))


VARIANT = Variant(
    name="rows_cpu",
    about="a slice of 4096 numbers a task",
    device="cpu",
    call=swiglu,
    dtypes=("float32", "bfloat16", "float16"),
)
