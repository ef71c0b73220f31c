"""All threads, eight numbers at a time, stores that pass by the caches (numba)."""

from dataclasses import replace
from functools import partial

import numba
import numpy as np

from engine.kernels.compiled import kernel
from engine.kernels.experiments.stream.backend import ALIGNED, Backend
from engine.kernels.experiments.stream.streaming import (
    WIDE,
    fence,
    scaled_8,
    scaled_8_through,
    summed_8,
    summed_8_through,
)  # fmt: skip

GRAIN = 512  # numbers: parts begin at multiples of this


@kernel
def _scaled(out_N, x_N, factor, parts, past):
    grains = out_N.shape[0] // GRAIN
    for part in numba.prange(parts):
        first, last = grains * part // parts * GRAIN, grains * (part + 1) // parts * GRAIN
        if past:
            for at in range(first, last, WIDE):
                scaled_8(out_N, x_N, factor, at)
        else:
            for at in range(first, last, WIDE):
                scaled_8_through(out_N, x_N, factor, at)
        if part == parts - 1:
            for at in range(last, out_N.shape[0]):
                out_N[at] = factor * x_N[at]
        fence()


@kernel
def _summed(out_N, x_N, y_N, factor, parts, past):
    grains = out_N.shape[0] // GRAIN
    for part in numba.prange(parts):
        first, last = grains * part // parts * GRAIN, grains * (part + 1) // parts * GRAIN
        if past:
            for at in range(first, last, WIDE):
                summed_8(out_N, x_N, y_N, factor, at)
        else:
            for at in range(first, last, WIDE):
                summed_8_through(out_N, x_N, y_N, factor, at)
        if part == parts - 1:
            for at in range(last, out_N.shape[0]):
                out_N[at] = x_N[at] + factor * y_N[at]
        fence()


def scaled(out_N: np.ndarray, x_N: np.ndarray, factor: float, past: bool = True) -> None:
    """out = factor · x."""
    _aligned(out_N)
    _scaled(out_N, x_N, float(factor), numba.get_num_threads(), past)


def summed(
    out_N: np.ndarray, x_N: np.ndarray, y_N: np.ndarray, factor: float, past: bool = True
) -> None:
    """out = x + factor · y."""
    _aligned(out_N)
    _summed(out_N, x_N, y_N, float(factor), numba.get_num_threads(), past)


def _aligned(out_N: np.ndarray) -> None:
    assert out_N.ctypes.data % ALIGNED == 0, "streaming stores need `backend.empty`"


BACKEND = Backend(
    name="streaming-stores",
    about="numba, all threads, stores past the caches",
    scaled=scaled,
    summed=summed,
    rank=4,
    streams=True,
)
# The same loops, but a line is read before it is written, which streaming stores save.
THROUGH = replace(
    BACKEND, scaled=partial(scaled, past=False), summed=partial(summed, past=False), streams=False
)
