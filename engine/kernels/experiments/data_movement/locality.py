"""Locality of an address stream by itself, whatever the caches: spatial and temporal, each 0 to 1.

Definitions as the paper's released simulator computes them (CMU-SAFARI/DAMOV,
simulator/src/locality.cpp); the paper writes the temporal score as
another sum over reuse counts. Addresses are elements, not lines.
"""

import numpy as np

from engine.kernels.compiled import checked

WINDOW = 32  # accesses looked back for the nearest address
BINS = 21  # powers of two, the last for everything farther


@checked
def _strides(places, window, histogram):
    """Nearest distance of each access to the `window` before it, by power of two; repeats out."""
    for n in range(window, places.shape[0]):
        nearest = 1 << 20
        for m in range(n - window, n):
            nearest = min(nearest, abs(places[m] - places[n]))
        if nearest:
            power = 0
            while 1 << power < nearest:
                power += 1
            histogram[power] += 1


@checked
def _reuses(places, last, histogram):
    """Accesses since the same place was last touched, by power of two; first touches out.

    `last`: of each place the access after its last one, 0 before its first.
    """
    for n in range(places.shape[0]):
        before = last[places[n]]
        if before:
            distance = min(n + 1 - before, 1 << 20)
            power = 0
            while 1 << power < distance:
                power += 1
            histogram[power] += 1
        last[places[n]] = n + 1


def spatial(places: np.ndarray, most: int = 200_000) -> float:
    """Σ share of accesses at stride 2ⁱ / 2ⁱ, over the first `most` accesses."""
    histogram = np.zeros(BINS, np.int64)
    _strides(places[:most], WINDOW, histogram)
    return float((histogram / 2.0 ** np.arange(BINS)).sum() / max(histogram.sum(), 1))


def temporal(places: np.ndarray) -> float:
    """Σ share of accesses reused after 2ⁱ others · (21 − i)/21: 1 where each repeats the last."""
    if not len(places):
        return 0.0
    histogram = np.zeros(BINS, np.int64)
    _reuses(places, np.zeros(int(places.max()) + 1, np.int64), histogram)
    weights = (BINS - np.arange(BINS)) / BINS
    return float((histogram * weights).sum() / len(places))
