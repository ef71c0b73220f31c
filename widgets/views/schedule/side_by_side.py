"""Operations of a step that go on side by side: where a few can be read, and how many at once."""

from collections.abc import Mapping, Sequence

import numpy as np

from engine.core.spans import union
from widgets.theme import figure
from widgets.views.schedule.busy import Busy

FEW = 24  # operations in sight


def side_by_side(start: np.ndarray, stop: np.ndarray) -> list[float] | None:
    """Seconds at which the `FEW` operations in a row begin and end that take most lanes at once in
    the mean; None of a run with less than twice as many."""
    if len(start) < 2 * FEW:
        return None
    order = np.argsort(start, kind="stable")[: len(start) // FEW * FEW].reshape(-1, FEW)
    begin, end = start[order[:, 0]], stop[order].max(axis=1)
    lanes = (stop[order] - start[order]).sum(axis=1) / np.maximum(end - begin, 1e-300)
    best = int(np.argmax(np.round(lanes, 6)))  # the first of those alike
    return [float(begin[best]), float(end[best])]


def step_figures(busy: Mapping[int, Busy], names: Sequence[str]) -> list[list[str]]:
    """Of the steps that were recorded, which may be few of many: what lies between is no idle
    time. `busy`: by a lane's place among `names`."""
    starts, stops = (
        np.concatenate([getattr(each, edge) for each in busy.values()])
        for edge in ("starts", "stops")
    )
    starts, stops = union(starts, stops)
    seconds, longest = float((stops - starts).sum()), max(busy, key=lambda i: busy[i].total)
    total = sum(each.total for each in busy.values())
    return [
        ["in steps recorded", figure(seconds, "s")],
        ["lanes busy at once", figure(total / seconds)],
        [f"busiest: {names[longest]}", figure(busy[longest].total, "s")],
    ]
