"""Running figures: what a figure of a whole run stood at at every moment, for its cursor.

A view's frame holds the whole history; its figures are those of the end. With these columns beside
them the browser tells each at the cursor, and the run's own beside it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

POINTS = 512  # moments sent of one figure
IN_ALL, AT_MOST, AT_END = "in all", "at most", "at the end"


@dataclass(frozen=True)
class Running:
    """`values` from `times` (seconds, in order) on; 0 before the first, or nothing where `empty`.
    `unit` as in `theme.figure`; `said`: what the run's own figure is of it. `of`: how many there
    are in all, said behind the value; 0 for none."""

    times: np.ndarray
    values: np.ndarray
    unit: str = ""
    said: str = IN_ALL
    of: int = 0
    empty: bool = False


def counting(times: np.ndarray, said: str = IN_ALL, of: int = 0) -> Running:
    """How many moments of `times` have been."""
    ordered = np.sort(np.asarray(times, float))
    return Running(ordered, np.arange(1.0, len(ordered) + 1), said=said, of=of)


def mean(times: np.ndarray, values: np.ndarray, unit: str = "") -> Running:
    """The mean of the values whose moment has been."""
    order = np.argsort(times, kind="stable")
    each = np.asarray(values, float)[order]
    running = np.cumsum(each) / np.arange(1, len(each) + 1)
    return Running(np.asarray(times, float)[order], running, unit, AT_END, empty=True)


def running(told: Mapping[int, Running]) -> dict[str, Any]:
    """The columns of a frame; `told`: by the place of a figure among the view's."""
    found: dict[str, Any] = {}
    about: list[dict[str, Any]] = []
    for place, one in told.items():
        count = len(one.times)
        kept = np.unique(np.linspace(0, count - 1, min(count, POINTS)).astype(int))
        found[f"running{place}_time"] = np.asarray(one.times, np.float64)[kept]
        found[f"running{place}_value"] = np.asarray(one.values, np.float64)[kept]
        about.append({"place": place, "unit": one.unit, "said": one.said, "of": one.of,
                      "empty": one.empty})  # fmt: skip
    return {**found, "running": about} if about else {}
