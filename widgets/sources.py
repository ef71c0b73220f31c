"""Bokeh models that are told only what changed: data sources and the marks of an axis."""

import numpy as np
from bokeh.models import ColumnDataSource, LinearAxis

from widgets.picture import Line


def patch(source: ColumnDataSource, line: Line, owners: tuple[str, ...]) -> None:
    """Send what changed: nothing, the new tail, or the whole column."""
    x, y = source.data["x"], source.data["y"]
    if len(x) == len(line.x) and np.array_equal(x, line.x) and np.array_equal(y, line.y):
        return
    data = {"x": line.x, "y": line.y}
    if owners and len(owners) == len(line.x):
        data["owner"] = list(owners)
    old = len(x)
    grew = not owners and 1 < old <= len(line.x) and "owner" not in source.data
    # The last point only carries the latest value on, so it moves: patch it, then add what is new.
    if (
        grew
        and np.array_equal(x[: old - 1], line.x[: old - 1])
        and np.array_equal(y[: old - 1], line.y[: old - 1])
    ):
        source.patch({"x": [(old - 1, line.x[old - 1])], "y": [(old - 1, line.y[old - 1])]})
        if len(line.x) > old:
            source.stream({"x": line.x[old:], "y": line.y[old:]})
        return
    source.data = data


def mark(axis: LinearAxis, heights: list[float], texts: list[str]) -> None:
    """Put these texts at these heights of an axis."""
    overrides = dict(zip(heights, texts, strict=True))
    if axis.ticker.ticks != heights:
        axis.ticker.ticks = heights
    if axis.major_label_overrides != overrides:
        axis.major_label_overrides = overrides
