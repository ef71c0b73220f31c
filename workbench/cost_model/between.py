"""Hierarchical interval of an operator's error on a device that no constants were fitted to.

An error there is a shift that the whole device has, plus the scatter of its rows. Scatter is that
of rows held out on other devices. A shift's scale is what constants of one device alone show on
another: the middle error of a pair of devices has twice the variance of one device's own shift. An
operator's own pairs count for it with as much of all operators' as `SHARED` devices would weigh,
and few devices widen the shift to a Student t of as many degrees of freedom as they leave.
"""

from collections.abc import Collection, Mapping, Sequence
from statistics import NormalDist
from typing import NamedTuple

import numpy as np

from engine.core.intervals import student_quantiles

INSIDE = 0.9  # of rows, that an interval is to hold
SHARED = 2.0  # the least that a spread of an operator's own is told by: three devices
PLACES = (np.arange(199) + 0.5) / 199  # quantiles that stand for a distribution
PAIR = 2.0  # shifts of a pair of devices, over one device's, as variances
Pair = tuple[str, str, str]  # operator, device that was fitted, device that was not


class Shift(NamedTuple):
    """Spread of one device's shift: its scale, and degrees of freedom that it is known with."""

    scale: float
    freedom: int


def shift(
    pairs: Mapping[Pair, np.ndarray], name: str, without: Collection[str] = ()
) -> Shift | None:
    """Of an operator, from pairs of devices but those. None where there is no pair of any.

    `pairs`: ln(predicted / measured) on a device by constants of another.
    """
    squares: dict[str, list[float]] = {}
    devices: dict[str, set[str]] = {}
    for (operator, fitted, other), wrong in pairs.items():
        if fitted not in without and other not in without:
            squares.setdefault(operator, []).append(float(np.median(wrong)) ** 2 / PAIR)
            devices.setdefault(operator, set()).update((fitted, other))
    if not squares:
        return None
    freedom = {operator: len(found) - 1 for operator, found in devices.items()}
    known = sum(freedom.values())
    pooled = sum(freedom[each] * float(np.mean(found)) for each, found in squares.items()) / known
    own, mine = freedom.get(name, 0), float(np.mean(squares.get(name, [0.0])))
    return Shift(float(np.sqrt((SHARED * pooled + own * mine) / (SHARED + own))), known)


def half(scatter: Sequence[np.ndarray], one: Shift, fitted: int) -> float:
    """What nine in ten errors are below on a device whose constants were fitted on `fitted` others.

    `scatter`: errors of rows held out, of each other device, which count alike.
    """
    scale = one.scale * np.sqrt(1 + 1 / fitted)  # the others' mean shift is not known either
    shifts = scale * student_quantiles(PLACES, one.freedom)
    values = [np.abs(wrong[:, None] + shifts).ravel() for wrong in scatter]
    weights = [np.full(len(each), 1 / len(each)) for each in values]
    together, heavy = np.concatenate(values), np.concatenate(weights)
    order = np.argsort(together)
    below = np.cumsum(heavy[order]) / heavy.sum()
    return float(together[order[min(int(np.searchsorted(below, INSIDE)), len(order) - 1)]])


def alike(wide: float) -> np.ndarray:
    """Errors of which nine in ten are below `wide`, where no more than that is known of them."""
    normal = NormalDist()
    scale = wide / normal.inv_cdf((1 + INSIDE) / 2)
    return np.array([scale * normal.inv_cdf(float(place)) for place in PLACES])
