"""Regime maps as Bokeh figures: the claim's figure over a knob, shaded where it holds, with what is
needed, what the paper says, and where the default and the paper stand."""

import math
import textwrap
from itertools import pairwise
from typing import Any

import numpy as np
from bokeh.models import BoxAnnotation, FixedTicker, Legend

from engine.core.errors import BadInput
from widgets import theme
from widgets.chart.picture import Limit
from widgets.figure import Panel, Series, figure
from widgets.figure.panel import unit
from workbench.claim import Claim
from workbench.claim_text import written
from workbench.regime import Point, Regime, RegimeMap, sentence, stretches

WIDTH, HEIGHT = 560, 320
SCALED = ("s", "B", "B/s")  # units whose ticks are written with their own prefixes
TICKS = 9  # of an axis at most: spaces between labels
LINE = 18  # pixels of height more for each line of the title but one, and for a legend
SWATCH = 40  # pixels that a name of the legend takes beside its letters
LETTER, BESIDE = 8.2, 70  # pixels of a letter of the title, and of what stands beside the frame
UPRIGHT = 8.5  # pixels of the figure's height for each letter of the y axis


def said(regime: Regime, claim: Claim, drawn: RegimeMap, brief: bool = False) -> str:
    """The map's sentence, and whether it was judged at the small size alone. `brief`: no more than
    where the claim holds."""
    text = sentence(
        regime, drawn, lambda value: written(value, unit(regime.x)), claim.direction, brief
    )
    return f"{text}; judged at the small size" if drawn.fast else text


def regime_panel(regime: Regime, claim: Claim, drawn: RegimeMap) -> Panel:
    """The map's lines and limits as plain values."""
    series = []
    for hue, line in enumerate(drawn.lines()):
        own = _own(drawn, line)
        columns = np.array([_columns(point) for point in own]).T
        has = np.isfinite(columns[2:]).all() and (columns[2] < columns[3]).any()
        ends = {"low": columns[2], "high": columns[3]} if has else {}
        series.append(Series(
            line or regime.upright, columns[0], columns[1], hue=hue,
            modelled=claim.grade == "modelled", **ends,
        ))  # fmt: skip
    return Panel(
        "", tuple(series), regime.x, regime.upright, regime.log_x, regime.log_y, zero=False,
        limits=_limits(regime, claim, drawn),
    )  # fmt: skip


def regime_figure(
    regime: Regime, claim: Claim, drawn: RegimeMap | None, *, dark: bool = False,
    width: int = WIDTH, height: int = HEIGHT,
) -> Any:  # fmt: skip
    """The map as a figure whose title says where the claim holds. Raises BadInput without one."""
    if drawn is None:
        raise BadInput(f"regime {regime.name!r}: not drawn yet; ask for it first")
    panel = regime_panel(regime, claim, drawn)
    title = _folded(said(regime, claim, drawn), (width - BESIDE) / LETTER)
    names = [series.name for series in panel.series]
    beside = sum(LETTER * len(name) + SWATCH for name in names) < width
    rows = 0 if len(names) < 2 else 1 if beside else len(names)
    more = LINE * (title.count("\n") + rows)
    made = figure(panel, dark=dark, width=width, height=height + more)
    made.title.text = title
    made.yaxis.axis_label = _folded(regime.upright, height / UPRIGHT)
    for legend in list(made.right):  # beside the frame it would take half of the width
        if isinstance(legend, Legend):
            made.right.remove(legend)
            legend.update(
                orientation="horizontal" if beside else "vertical",
                spacing=16 if beside else 0, margin=2, padding=2,
            )  # fmt: skip
            made.add_layout(legend, "below")
    of = unit(regime.x)
    if regime.log_x or of in SCALED:
        places = sorted({point.value for point in drawn.points})
        made.xaxis.ticker = FixedTicker(ticks=_apart(places, regime.log_x))
        scale = of if of in SCALED else ""
        made.xaxis.major_label_overrides = {at: written(at, scale) for at in places}
        made.xaxis.axis_label = regime.x.removesuffix(f" ({scale})")
    if len(drawn.lines()) == 1:
        _shade(made, regime, _own(drawn, drawn.lines()[0]), dark)
    for hue, line in enumerate(drawn.lines()):
        _hollow(made, _own(drawn, line), theme.hues(dark)[hue % len(theme.HUES)], dark)
    return made


def _apart(places: list[float], is_log: bool) -> list[float]:
    """Those of rising places that stand so far apart on the axis that their labels have room."""
    at = [math.log(place) if is_log else place for place in places]
    least = (at[-1] - at[0]) / TICKS
    kept = places[:1]
    for place, here in zip(places, at, strict=True):
        last = math.log(kept[-1]) if is_log else kept[-1]
        if here - last >= least * (1 - 1e-9):
            kept.append(place)
    return kept


def _folded(text: str, letters: float) -> str:
    return "\n".join(textwrap.wrap(text, int(letters)))


def _own(drawn: RegimeMap, line: str) -> list[Point]:
    own = (point for point in drawn.points if point.line == line)
    return sorted(own, key=lambda point: point.value)


def _columns(point: Point) -> tuple[float, float, float, float]:
    if point.figure is None:
        return point.value, math.nan, math.nan, math.nan
    return point.value, point.figure.value, point.figure.low, point.figure.high


def _limits(regime: Regime, claim: Claim, drawn: RegimeMap) -> tuple[Limit, ...]:
    """What is needed and what the paper says across, default and paper upright."""
    limits = []
    needed = next((p.needed for p in drawn.points if p.needed is not None), None)
    if needed is not None:
        limits.append(Limit(needed, f"needed {_told(needed, regime)}"))
    reported = claim.reported
    if reported is not None and not reported.direction and reported.value != needed:
        limits.append(Limit(reported.value, f"the paper {_told(reported.value, regime)}"))
    upright: dict[float, list[str]] = {}  # of both at one place a single label
    if regime.default is not None:
        upright.setdefault(regime.default, []).append("default")
    if regime.paper is not None:
        upright.setdefault(regime.paper, []).append(regime.paper_is.partition(",")[0])
    limits += [Limit(at, ", ".join(names), vertical=True) for at, names in upright.items()]
    return tuple(limits)


def _told(value: float, regime: Regime) -> str:
    """A value of the y axis as its ticks say it."""
    return written(value, unit(regime.y))


def _shade(made: Any, regime: Regime, points: list[Point], dark: bool) -> None:
    """A band behind each stretch of values at which the claim holds."""
    places = [point.value for point in points]
    middle = [
        math.sqrt(a * b) if regime.log_x and a > 0 else (a + b) / 2 for a, b in pairwise(places)
    ]
    for begin, end in stretches([point.stands for point in points]):
        made.add_layout(BoxAnnotation(
            left=middle[begin - 1] if begin else None,
            right=middle[end] if end < len(middle) else None,
            fill_color=theme.hues(dark)[2], fill_alpha=0.12, line_color=None, level="underlay",
        ))  # fmt: skip


def _hollow(made: Any, points: list[Point], color: str, dark: bool) -> None:
    """An open circle where the claim does not hold, a full one where it does."""
    paper = theme.scheme(dark).paper
    for holds in (False, True):
        own = [p for p in points if p.stands == holds and p.figure is not None]
        if own:
            made.scatter(
                [p.value for p in own], [p.figure.value for p in own if p.figure], size=8,
                line_color=color, line_width=2, fill_color=color if holds else paper,
            )  # fmt: skip
