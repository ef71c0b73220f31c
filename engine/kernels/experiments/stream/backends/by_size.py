"""Stores past the caches for vectors that no cache holds, through them for those that fit."""

from functools import cache

import numpy as np

from engine.hardware.measure import caches
from engine.kernels.experiments.stream.backend import Backend
from engine.kernels.experiments.stream.backends import plain_loop, streaming_stores

VECTORS = 3  # that share the cache
UNKNOWN = 32 * 2**20  # bytes, where the system does not tell


@cache
def _last() -> float:
    """Bytes of the largest cache."""
    return max(caches().values(), default=UNKNOWN)


def _fits(out_N: np.ndarray) -> bool:
    return VECTORS * out_N.nbytes <= _last()


def scaled(out_N: np.ndarray, x_N: np.ndarray, factor: float) -> None:
    """out = factor · x."""
    (plain_loop if _fits(out_N) else streaming_stores).scaled(out_N, x_N, factor)


def summed(out_N: np.ndarray, x_N: np.ndarray, y_N: np.ndarray, factor: float) -> None:
    """out = x + factor · y."""
    (plain_loop if _fits(out_N) else streaming_stores).summed(out_N, x_N, y_N, factor)


BACKEND = Backend(
    name="by-size",
    about="streaming stores past the last cache, the plain loop within it",
    scaled=scaled,
    summed=summed,
    rank=5,
    streams=True,
)
