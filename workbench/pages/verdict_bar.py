"""The bar of a verdict as plain values: the paper, what was needed, and what came out here, on one
scale whose places are shares of its width."""

import math
from typing import Any

from widgets import theme
from workbench.finding import Figure, Reported

SPREAD = 20.0  # largest over smallest, beyond which the scale is logarithmic
MARGIN = 0.06  # of the width, free at both ends


def verdict_bar(
    figure: Figure | None, needed: float | None, reported: Reported | None
) -> dict[str, Any]:
    """`marks`: kind, place, text; `low` and `high`: places of the interval's ends. Empty where
    there is no figure, or nothing to hold it against."""
    if figure is None or not math.isfinite(figure.value):
        return {}
    marks = [("here", figure.value, "here")]
    if reported is not None:
        marks.append(("paper", reported.value, "the paper"))
        if reported.none is not None:
            marks.append(("none", reported.none, "no effect"))
    if needed is not None:
        marks.append(("needed", needed, "needed"))
    if len(marks) < 2:
        return {}
    ends = [end for end in (figure.low, figure.high) if math.isfinite(end)]
    scale = _scale([value for _, value, _ in marks] + ends)
    unit = figure.unit
    return {
        "marks": [
            {"kind": kind, "at": scale(value), "text": f"{text} {theme.figure(value, unit)}"}
            for kind, value, text in marks
        ],
        "low": scale(figure.low) if math.isfinite(figure.low) else 0.0,
        "high": scale(figure.high) if math.isfinite(figure.high) else 1.0,
    }


def _scale(values: list[float]) -> Any:
    """A function from values to places within [0, 1]."""
    low, high = min(values), max(values)
    turn = math.log if low > 0 and high / low > SPREAD else float
    first, last = turn(low), turn(high)
    room = (last - first) or 1.0

    def place(value: float) -> float:
        share = (turn(value) - first) / room if last > first else 0.5
        return round(MARGIN + (1 - 2 * MARGIN) * share, 4)

    return place
