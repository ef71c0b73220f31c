"""A plain loop cut into one part a thread (numba): what a native program writes, through caches."""

import numba
import numpy as np

from engine.kernels.compiled import kernel
from engine.kernels.experiments.stream.backend import Backend


@kernel
def _scaled(out_N, x_N, factor):
    for i in numba.prange(out_N.shape[0]):
        out_N[i] = factor * x_N[i]


@kernel
def _summed(out_N, x_N, y_N, factor):
    for i in numba.prange(out_N.shape[0]):
        out_N[i] = x_N[i] + factor * y_N[i]


def scaled(out_N: np.ndarray, x_N: np.ndarray, factor: float) -> None:
    """out = factor · x."""
    _scaled(out_N, x_N, float(factor))


def summed(out_N: np.ndarray, x_N: np.ndarray, y_N: np.ndarray, factor: float) -> None:
    """out = x + factor · y."""
    _summed(out_N, x_N, y_N, float(factor))


BACKEND = Backend(
    name="plain-loop",
    about="numba, a plain parallel loop, stores through the caches",
    scaled=scaled,
    summed=summed,
    rank=3,
)
