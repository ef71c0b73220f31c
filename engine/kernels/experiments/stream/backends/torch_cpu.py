"""torch on the processor: one call an assignment, torch's own threads."""

import numpy as np
import torch
from torch import Tensor

from engine.kernels.experiments.stream.backend import Backend


def scaled(out_N: Tensor, x_N: Tensor, factor: float) -> None:
    """out = factor · x."""
    if factor == 1.0:
        out_N.copy_(x_N)
    else:
        torch.mul(x_N, factor, out=out_N)


def summed(out_N: Tensor, x_N: Tensor, y_N: Tensor, factor: float) -> None:
    """out = x + factor · y."""
    torch.add(x_N, y_N, alpha=factor, out=out_N)


def fetch(x_N: Tensor) -> np.ndarray:
    """The same memory as numpy."""
    return np.asarray(x_N.numpy())


BACKEND = Backend(
    name="torch",
    about="torch on the processor, its own threads",
    scaled=scaled,
    summed=summed,
    rank=2,
    place=torch.from_numpy,
    fetch=fetch,
)
