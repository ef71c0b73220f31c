"""Confidence intervals of measured scores, at 95%: of a share, and of a mean over problems."""

import math
from collections.abc import Sequence

import numpy as np

NORMAL = 1.959964  # standard deviations on either side of 95%
RESAMPLES = 2000


def wilson(right: float, n: int) -> tuple[float, float]:
    """The interval of a share `right` / `n` of independent trials (Wilson, 1927); n of 0: (0, 1).

    Honest near 0 and 1, where the textbook's interval shrinks to nothing.
    """
    if n == 0:
        return 0.0, 1.0
    share, z2 = right / n, NORMAL**2
    middle = (share + z2 / (2 * n)) / (1 + z2 / n)
    half = NORMAL / (1 + z2 / n) * math.sqrt(share * (1 - share) / n + z2 / (4 * n * n))
    return max(0.0, middle - half), min(1.0, middle + half)


def of_mean(values_PK: np.ndarray, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Low and high of each column's mean over the rows: a bootstrap over the rows (Efron, 1979).

    Rows are what was drawn independently (problems); columns may depend on each other.
    """
    count = len(values_PK)
    chance = np.random.default_rng(seed)
    weights_RP = chance.multinomial(count, np.full(count, 1 / count), RESAMPLES) / count
    means_RK = weights_RP @ values_PK
    low_K, high_K = np.quantile(means_RK, [0.025, 0.975], axis=0)
    return low_K, high_K


# Two-sided 95% quantiles of Student's t, by degrees of freedom from 1 on; NORMAL beyond them.
STUDENT = (
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160,
    2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056,
    2.052, 2.048, 2.045, 2.042,
)  # fmt: skip


def student(values: Sequence[float]) -> tuple[float, float]:
    """The interval of the mean of a few independent values (Student, 1908); of one value: no end.

    Raises ValueError for none.
    """
    count = len(values)
    if count == 0:
        raise ValueError("an interval of no values")
    middle = math.fsum(values) / count
    if count == 1:
        return -math.inf, math.inf
    variance = math.fsum((value - middle) ** 2 for value in values) / (count - 1)
    factor = STUDENT[count - 2] if count - 2 < len(STUDENT) else NORMAL
    half = factor * math.sqrt(variance / count)
    return middle - half, middle + half


def student_quantiles(places: np.ndarray, freedom: int) -> np.ndarray:
    """Quantiles of Student's t with so many degrees of freedom, by sums under its density."""
    at = np.sinh(np.linspace(-9, 9, 20001))
    density = (1 + at**2 / freedom) ** (-(freedom + 1) / 2)
    below = np.concatenate([[0.0], np.cumsum((density[1:] + density[:-1]) / 2 * np.diff(at))])
    found: np.ndarray = np.interp(places, below / below[-1], at)
    return found
