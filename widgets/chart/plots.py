"""A picture as a frame for the browser: no more points than its pixels can show."""

from typing import Any

import numpy as np

from widgets.chart.picture import POINTS, Line, Picture, Plot, extremes
from widgets.theme import figure

FEWEST = 200  # points of a line, however few pixels the browser says it has
Span = tuple[float, float] | None  # seconds in sight, of more


def frame_of(picture: Picture, window: dict[str, Any]) -> dict[str, Any]:
    """`picture` without its figures; `window`: pixels of a plot's width, start and stop in seconds.

    `x` float64 and `y` float32 hold all lines; a line is `count` of them from `first` on. `owner`
    holds places in `names`, for each point of plots whose points are owners.
    """
    columns, owners, names = _Columns(), _Owners(), {"": 0}
    points, span = _asked(window)
    plots = []
    for plot in picture.plots:
        lines = [columns.add(line, points, span if plot.timed else None) for line in plot.lines]
        plots.append({**_facts(plot), "lines": lines, **owners.add(plot.owners, names)})
        if window.get("static"):  # nobody there to say who keeps a limit
            plots[-1]["promised"] = ""
    note = picture.note
    if not note and columns.shown < columns.whole:
        note = f"showing {figure(columns.shown)} of {figure(columns.whole)} points"
    return {
        "question": picture.question,
        "empty": picture.empty,
        "note": note,
        "modelled": any(line.modelled for plot in picture.plots for line in plot.lines),
        "across": picture.across,
        "plots": plots,
        "names": list(names),
        "x": np.concatenate([np.zeros(0), *columns.x]),
        "y": np.concatenate([np.zeros(0, np.float32), *columns.y], dtype=np.float32),
        "owner": np.array(owners.places, np.uint32),
    }


class _Columns:
    """Points of all lines one after another."""

    def __init__(self) -> None:
        self.x: list[np.ndarray] = []
        self.y: list[np.ndarray] = []
        self.shown = self.whole = 0

    def add(self, line: Line, points: int, span: Span) -> dict[str, Any]:
        x, y = line.x, line.y
        if span is not None:
            spare = span[1] - span[0]  # so that what is moved into sight is there
            first = max(0, int(np.searchsorted(x, span[0] - spare)) - 1)
            last = int(np.searchsorted(x, span[1] + spare)) + 1
            x, y, points = x[first:last], y[first:last], 3 * points
        kept = extremes(y, points)
        found = {"first": self.shown, "count": len(kept), "name": line.name, "hue": line.hue}
        self.x.append(x[kept])
        self.y.append(y[kept])
        self.shown += len(kept)
        self.whole += len(x)
        return {**found, "step": line.step, "modelled": line.modelled, "faint": line.faint}


class _Owners:
    """Places of names, of all plots one after another."""

    def __init__(self) -> None:
        self.places: list[int] = []

    def add(self, owners: tuple[str, ...], names: dict[str, int]) -> dict[str, int]:
        first = len(self.places)
        self.places.extend(names.setdefault(owner, len(names)) for owner in owners)
        return {"owner_first": first, "owner_count": len(owners)}


def _facts(plot: Plot) -> dict[str, Any]:
    """All of a plot but its lines and owners."""
    return {
        "title": plot.title,
        "timed": plot.timed,
        "x_unit": plot.x_unit,
        "y_unit": plot.y_unit,
        "right": plot.right,
        "top": plot.top,
        "promised": plot.promised,
        "dots": [{"x": dot.x, "y": dot.y, "text": dot.text} for dot in plot.dots],
        "readings": [
            {"x": reading.x, "y": reading.y, "name": reading.name, "value": reading.value}
            for reading in plot.readings
        ],
        "limits": [
            {"value": limit.value, "text": limit.text, "vertical": limit.vertical}
            for limit in plot.limits
        ],
    }


def _asked(window: dict[str, Any]) -> tuple[int, Span]:
    """How many points of a line, and of which time; a window that makes no sense asks for all."""
    pixels, start, stop = (window.get(name) for name in ("pixels", "start", "stop"))
    points = POINTS
    if isinstance(pixels, int | float) and pixels > 0:
        points = int(min(POINTS, max(FEWEST, 2 * pixels)))
    if isinstance(start, int | float) and isinstance(stop, int | float) and stop > start:
        return points, (float(start), float(stop))
    return points, None
