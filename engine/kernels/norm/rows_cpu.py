"""RMS norm, a row a task (numba)."""

import math

import numpy as np
import torch
from numba import prange
from torch import Tensor

from engine.kernels.compiled import inner, kernel
from engine.kernels.lanes import LANES
from engine.kernels.operator import Variant
from engine.kernels.rows import part, squares


@inner
def normalise(x, x_at, width, weight, weight_at, eps, y, y_at):
    """y = x / rms(x) · weight for one row of flat arrays; x and y may be the same row."""
    vectors = width // LANES
    total = squares(x, x_at, vectors)
    for i in range(vectors * LANES, width):
        total += x[x_at + i] * x[x_at + i]
    scale = np.float32(1.0) / np.float32(math.sqrt(total / np.float32(width) + eps))
    row, by, out = part(x, x_at), part(weight, weight_at), part(y, y_at)
    for i in range(width):
        out[i] = row[i] * scale * by[i]


@kernel
def _rms_norm(x, rows, width, weight, eps, y):
    for index in prange(rows):
        row = np.int64(index)
        normalise(x, row * width, width, weight, 0, eps, y, row * width)


def rms_norm(x_TC: Tensor, weight_C: Tensor, eps: float) -> Tensor:
    """x / √(mean(x²) + eps) · weight over the last axis, in float32; any leading axes."""
    x = np.ascontiguousarray(x_TC.detach().float().numpy())
    weight = np.ascontiguousarray(weight_C.detach().float().numpy())
    y = np.empty_like(x)
    width = len(weight)
    _rms_norm(x.reshape(-1), x.size // width, width, weight, np.float32(eps), y.reshape(-1))
    return torch.from_numpy(y)


VARIANT = Variant(
    name="rows_cpu",
    about="a row a task, threads over rows",
    device="cpu",
    call=rms_norm,
    dtypes=("float32", "bfloat16", "float16"),
    rank=2,
)
