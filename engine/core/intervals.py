"""Confidence intervals of measured scores, at 95%: of a share, and of a mean over problems."""

import math

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
