"""The bar of a verdict as plain values: the paper, what was needed, and what came out here, on one
scale whose places are shares of its width."""

import math
from collections.abc import Callable
from typing import Any

from widgets import theme
from workbench.finding import Figure, Reported

SPREAD = 20.0  # largest over smallest, beyond which the scale is logarithmic
UNITS = ("%", "s", "B", "B/s", "×")  # said in the bar; nouns are said beside it
MARGIN = 0.06  # of the width, free at both ends


def verdict_bar(
    figure: Figure | None, needed: float | None, reported: Reported | None
) -> dict[str, Any]:
    """`marks`: kind, place, text; `low` and `high`: places of the interval's ends. Empty where
    there is no figure, nothing to hold it against, or no difference between them.

    Marks of one value share their text.
    """
    if figure is None or not math.isfinite(figure.value):
        return {}
    marks = [("here", figure.value, "here")]
    if reported is not None and not reported.direction:
        marks.append(("paper", reported.value, "the paper"))
    if needed is not None:
        marks.append(("needed", needed, "needed"))
    if reported is not None and reported.none is not None and reported.none != needed:
        marks.append(("none", reported.none, "no effect"))
    values = [value for _, value, _ in marks]
    if len(set(values)) < 2:
        return {}
    scale = _scale(values, [end for end in (figure.low, figure.high) if math.isfinite(end)])
    unit = figure.unit if figure.unit in UNITS else ""
    told: dict[float, list[str]] = {}
    for _, value, text in marks:
        told.setdefault(value, []).append(text)
    first = {value: kind for kind, value, _ in reversed(marks)}
    return {
        "marks": [
            {
                "kind": kind,
                "at": scale(value),
                "text": f"{', '.join(told[value])} {theme.figure(value, unit)}"
                if first[value] == kind
                else "",
            }
            for kind, value, _ in marks
        ],
        "low": scale(figure.low) if math.isfinite(figure.low) else 0.0,
        "high": scale(figure.high) if math.isfinite(figure.high) else 1.0,
    }


def _scale(values: list[float], ends: list[float]) -> Callable[[float], float]:
    """A function from values to places within [0, 1]; ends of an interval that are far outside
    the values do not stretch it."""
    low, high = min(values), max(values)
    room = high - low
    near = [end for end in ends if low - room <= end <= high + room]
    low, high = min([low, *near]), max([high, *near])
    turn: Callable[[float], float] = math.log if low > 0 and high / low > SPREAD else float
    first, last = turn(low), turn(high)

    def place(value: float) -> float:
        turned = turn(value) if turn is float or value > 0 else first
        share = (turned - first) / (last - first)
        return round(min(1.0, max(0.0, MARGIN + (1 - 2 * MARGIN) * share)), 4)

    return place
