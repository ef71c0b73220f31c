"""`Panel`: one pair of axes with lines, intervals and limits, as plain values that Bokeh can draw.

Charts of the views become panels here: a `Picture` of `widgets.chart`, or the frame of the curves
view. Units are those of `theme.figure`.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from engine.core.errors import BadInput
from widgets.chart.picture import Dot, Limit, Picture, Plot

UNITS = ("s", "B", "B/s", "FLOP", "FLOP/s", "%", "W", "J")
LABEL = re.compile(r"^(.*?) \((" + "|".join(map(re.escape, UNITS)) + r")\)$")


@dataclass(frozen=True)
class Series:
    """One line. `x`, `y` and, where there is an interval, `low` and `high`: float arrays [N].

    `hue`: a place in `theme.hues`. `bound`: a limit, not a result. `step`: each value holds until
    the next.
    """

    name: str
    x: np.ndarray
    y: np.ndarray
    low: np.ndarray | None = None
    high: np.ndarray | None = None
    hue: int = 0
    bound: bool = False
    modelled: bool = False
    step: bool = False


@dataclass(frozen=True)
class Panel:
    """`x` and `y`: what the axes count, the unit in brackets. `zero`: a linear y axis starts at
    nought. `limits`: straight lines with a label; vertical ones mark a value of x (a default, a
    paper's point), the others a threshold. `dots`: marked points with their text."""

    title: str
    series: tuple[Series, ...]
    x: str = ""
    y: str = ""
    log_x: bool = False
    log_y: bool = False
    zero: bool = True
    limits: tuple[Limit, ...] = ()
    dots: tuple[Dot, ...] = ()


Shown = Panel | Picture | Mapping[str, Any] | Sequence[Panel]


def panels(shown: Shown) -> list[Panel]:
    """The panels of a chart. Raises BadInput where there is nothing to see, or no chart."""
    if isinstance(shown, Panel):
        found = [shown]
    elif isinstance(shown, Picture):
        if shown.empty:
            raise BadInput(f"figure: {shown.empty}")
        found = [_of_plot(plot) for plot in shown.plots]
    elif isinstance(shown, Mapping):
        found = _of_curves(shown)
    else:
        found = list(shown)
    if not any(len(series.x) for panel in found for series in panel.series):
        raise BadInput("figure: no points to draw yet; run it to the end first")
    return found


def unit(label: str) -> str:
    """The unit a label names in brackets; "" where there is none."""
    match = LABEL.match(label)
    return match[2] if match else ""


def _of_curves(frame: Mapping[str, Any]) -> list[Panel]:
    if "panels" not in frame:
        raise BadInput("figure: this view has no lines; choose latency, levels or curves")
    if frame.get("empty"):
        raise BadInput(f"figure: {frame['empty']}")
    return [
        Panel(
            panel["name"],
            tuple(_of_curve(frame, series) for series in panel["series"]),
            panel["x"], panel["y"], panel["log_x"], panel["log_y"], panel["zero"],
        )
        for panel in frame["panels"]
    ]  # fmt: skip


def _of_curve(frame: Mapping[str, Any], series: Mapping[str, Any]) -> Series:
    own = slice(series["first"], series["first"] + series["count"])
    columns = (frame[name][own] for name in ("x", "y", "low", "high"))
    return Series(
        series["name"], *columns, hue=max(series["hue"], 0), bound=series["bound"],
        modelled=series["modelled"],
    )  # fmt: skip


def _of_plot(plot: Plot) -> Panel:
    lines = tuple(
        Series(
            line.name, line.x, line.y, hue=0 if line.hue is None else line.hue,
            modelled=line.modelled, step=line.step,
        )
        for line in plot.lines if len(line.x)
    )  # fmt: skip
    read = (Dot(r.x, r.y, f"{r.name}: {r.value}") for r in plot.readings if np.isfinite(r.x))
    x, y = "time" if plot.timed else plot.title.lower(), "share" if plot.y_unit == "%" else ""
    return Panel(
        plot.title, lines, _label(x, plot.x_unit), _label(y or plot.title.lower(), plot.y_unit),
        limits=plot.limits, dots=(*plot.dots, *read),
    )  # fmt: skip


def _label(text: str, of: str) -> str:
    return f"{text} ({of})" if of else text
