"""The relative error of numbers against the true ones, as one figure no NaN slips through."""

import numpy as np
from numpy.typing import ArrayLike

FAR = 1e30  # stands for NaN and infinity, and still compares and draws as a number
LEAST = 1e-30  # scale of a truth that is all noughts


def largest(found: ArrayLike, right: ArrayLike) -> float:
    """The largest difference of any number; `FAR` where one is no number. 0 of nothing."""
    off = np.abs(np.asarray(found, np.float64) - np.asarray(right, np.float64))
    return float(np.nan_to_num(off, nan=FAR, posinf=FAR).max(initial=0.0))


def relative(found: ArrayLike, right: ArrayLike) -> float:
    """The largest difference over the truth's largest number."""
    scale = float(np.abs(np.asarray(right, np.float64)).max(initial=LEAST))
    return min(largest(found, right) / scale, FAR) if np.isfinite(scale) else FAR
