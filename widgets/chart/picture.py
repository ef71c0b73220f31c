"""Pictures: what a chart shows, as plain values.

A view's `picture` function turns its fold's frame into a `Picture`, which `widgets.chart.drawing`
draws. Times are in seconds, colours are indices of hues.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

KIBI = 1024.0  # bytes are written in its powers
POINTS = 2000  # what a line is reduced to: more than the pixels of a wide screen can show


@dataclass(frozen=True)
class Line:
    """One line, named at its right end. `x` and `y` are equally long float arrays.

    `hue` is a place in `theme.hues`; None is ink. `step` holds each value until the next.
    """

    name: str
    x: np.ndarray
    y: np.ndarray
    hue: int | None = 0
    step: bool = False
    modelled: bool = False
    faint: bool = False


@dataclass(frozen=True)
class Dot:
    """A marked point with its text beside it. `owner` makes it something a person can choose."""

    x: float
    y: float
    text: str
    hue: int | None = None
    owner: str = ""


@dataclass(frozen=True)
class Reading:
    """A height that matters, named on the left, with its value on the right and a dot at `x`."""

    x: float
    y: float
    name: str
    value: str


@dataclass(frozen=True)
class Limit:
    """A straight line across the plot: a capacity (horizontal) or a promise (vertical)."""

    value: float
    text: str
    vertical: bool = False


@dataclass(frozen=True)
class Plot:
    """One pair of axes. `title` says what is counted; units are those of `theme.figure`.

    `timed` plots share the page's time axis and carry its cursor. `top` is the upper end of y.
    """

    title: str
    lines: tuple[Line, ...]
    y_unit: str = ""
    x_unit: str = "s"
    right: float = 1.0
    top: float = 1.0
    dots: tuple[Dot, ...] = ()
    readings: tuple[Reading, ...] = ()  # in place of round numbers on the y axis
    limits: tuple[Limit, ...] = ()
    timed: bool = True
    owners: tuple[str, ...] = ()  # one for each point of the first line, where points are owners
    promised: str = ""  # the name under which a window tells the limit that a person drags


@dataclass(frozen=True)
class Picture:
    """Plots under one another (or `across`), the figures that matter and a note on what is left.

    `figures`: (text, what it is), at most four. `empty` says what to do where nothing is to see.
    """

    plots: tuple[Plot, ...] = ()
    figures: tuple[tuple[str, str], ...] = ()
    note: str = ""
    empty: str = ""
    across: bool = False
    question: str = ""  # in place of the view's own


@dataclass(frozen=True)
class Steps:
    """A quantity over time: `x` rising, `y` held until the next."""

    x: np.ndarray
    y: np.ndarray

    def at(self, time: float) -> float:
        """The value at `time`; nan before the first."""
        place = int(np.searchsorted(self.x, time, side="right")) - 1
        return float(self.y[place]) if place >= 0 else float("nan")


def steps(x: np.ndarray, y: np.ndarray, stop: float) -> Steps:
    """Step data carried on to `stop`."""
    if len(x) and stop > x[-1]:
        return Steps(np.append(x, stop), np.append(y, y[-1]))
    return Steps(x, y)


def extremes(values: np.ndarray, points: int = POINTS) -> np.ndarray:
    """Indices of the lowest and highest value of each slice, ends included: at most `points`."""
    count = len(values)
    if count <= points:
        return np.arange(count)
    slices = points // 2 - 1
    size = -(-count // slices)
    padded = np.pad(values, (0, slices * size - count), mode="edge").reshape(slices, size)
    first = np.arange(slices) * size
    found = np.concatenate(
        [[0, count - 1], first + padded.argmin(axis=1), first + padded.argmax(axis=1)]
    )
    return np.unique(np.minimum(found, count - 1))


class Scales:
    """The ends of the axes of several drawings of one view, so that they can be compared by eye."""

    def __init__(self) -> None:
        self.ends: dict[str, dict[int, tuple[float, float]]] = {}
        self.lent: dict[int, dict[str, Any]] = {}  # frames by drawing, to be shown as ghosts

    def forget(self) -> None:
        """A run was exchanged: start anew."""
        self.ends.clear()
        self.lent.clear()

    def fit(self, who: int, plot: Plot) -> Plot:
        """`plot` of drawing number `who` with axes as long as the longest of its like."""
        ends = self.ends.setdefault(plot.title, {})
        ends[who] = (plot.right, plot.top)
        right, top = (max(side) for side in zip(*ends.values(), strict=True))
        return replace(plot, right=right, top=top)


def ceiling(value: float, unit: str = "") -> float:
    """The next round number (1, 2, 2.5 or 5 times a power of ten) at or above `value`; of bytes
    ("B"), round as KiB, MiB or GiB, which they are written in."""
    if value <= 0 or not np.isfinite(value):
        return 1.0
    if unit == "B" and value >= KIBI:
        scale = KIBI ** int(np.log(value) / np.log(KIBI))
        return ceiling(value / scale) * scale
    power = 10.0 ** np.floor(np.log10(value))
    for step in (1.0, 1.2, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 8.0):
        if value <= step * power * 1.0001:
            return float(step * power)
    return float(10 * power)
