"""Responses as Bokeh figures: curves with the seeds as bands, or a heat map of two knobs."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from bokeh.models import BasicTicker, ColorBar, ColumnDataSource, HoverTool, LinearColorMapper
from bokeh.plotting import figure as bokeh_figure

from engine.core.errors import BadInput
from widgets import theme
from widgets.figure import Panel, Series, figure
from widgets.figure.draw import TOOLS, paint
from widgets.figure.panel import unit
from workbench.finding import Figure
from workbench.grid import unit_of
from workbench.response.response import Row, table

WIDE, HIGH = 900, 480  # pixels
STEPS = 64  # colours of a heat map
RATIO = 20  # the largest value over the smallest, from which on an axis is logarithmic


def number(text: str) -> float | None:
    """A value as a number; None where it is a name."""
    try:
        return float(text)
    except ValueError:
        return None


def worded(name: str) -> str:
    """A figure's name with its unit in brackets, where it has one."""
    return f"{name} ({unit_of(name)})" if unit_of(name) else name


def curves(
    rows: Sequence[Row], knob: str, second: str, name: str, *, modelled: bool = False,
    dark: bool = False, width: int = WIDE, height: int = HIGH,
) -> Any:  # fmt: skip
    """A figure over the first knob, a line for each value of the second. Raises BadInput where
    there is nothing yet."""
    found = table(rows, name)
    values = list(dict.fromkeys(value for _, value in found))
    places = [number(value) for value in values]
    named = any(place is None for place in places)
    at = {v: float(i) if named else p for i, (v, p) in enumerate(zip(values, places, strict=True))}
    series = []
    for hue, line in enumerate(dict.fromkeys(line for line, _ in found)):
        own = sorted((at[value] or 0.0, each) for (of, value), each in found.items() if of == line)
        columns = np.array([(x, e.value, e.low, e.high) for x, e in own]).T
        label = f"{second} = {line}" if second else name
        series.append(Series(label, *columns, hue=hue, modelled=modelled))
    if not series:
        raise BadInput(f"{name}: no run has come to it yet")
    known = sorted(p for p in places if p is not None)
    log = not named and known[0] > 0 and known[-1] / known[0] >= RATIO
    panel = Panel(f"{name} over {knob}", tuple(series), knob, worded(name), log_x=log, zero=False)
    made = figure(panel, dark=dark, width=width, height=height)
    if named:
        made.xaxis.ticker = list(range(len(values)))
        made.xaxis.major_label_overrides = dict(enumerate(values))
    elif len(values) <= 12:
        made.xaxis.ticker = known
    return made


def heat(
    rows: Sequence[Row], knob: str, second: str, name: str, *, dark: bool = False,
    width: int = WIDE, height: int = HIGH,
) -> Any:  # fmt: skip
    """A cell for each pair of values, its mean written in it. Raises BadInput where there is
    nothing yet."""
    found = table(rows, name)
    if not found:
        raise BadInput(f"{name}: no run has come to it yet")
    across = _in_order(value for _, value in found)
    up = _in_order(line for line, _ in found)
    paint_of = theme.scheme(dark)
    means = [each.value for each in found.values()]
    mapper = LinearColorMapper(palette=_ramp(dark), low=min(means), high=max(means))
    made = bokeh_figure(
        title=f"{worded(name)} over {knob} and {second}", x_range=across, y_range=up, width=width,
        height=height, x_axis_label=knob, y_axis_label=second, tools=TOOLS,
    )  # fmt: skip
    source = ColumnDataSource({
        "x": [value for _, value in found], "y": [line for line, _ in found], "mean": means,
        "said": [theme.figure(mean, unit(worded(name))) for mean in means],
        "interval": [_interval(each) for each in found.values()],
        "ink": [_ink(mean, min(means), max(means), dark) for mean in means],
    })  # fmt: skip
    cells = made.rect("x", "y", 1, 1, source=source, line_color=paint_of.paper,
                      fill_color={"field": "mean", "transform": mapper})  # fmt: skip
    made.text("x", "y", text="said", source=source, text_align="center", text_baseline="middle",
              text_font_size="12px", text_font=theme.FONT, text_color="ink")  # fmt: skip
    made.add_tools(HoverTool(
        renderers=[cells], visible=False,
        tooltips=[(knob, "@x"), (second, "@y"), (name, "@said"), ("interval", "@interval")],
    ))  # fmt: skip
    bar = ColorBar(color_mapper=mapper, ticker=BasicTicker(), width=12,
                   background_fill_color=paint_of.paper, major_label_text_color=paint_of.faint,
                   bar_line_color=None)  # fmt: skip
    made.add_layout(bar, "right")
    paint(made, dark)
    made.grid.visible = False
    return made


def _in_order(values: Any) -> list[str]:
    """Distinct values: numbers by size, names as they came."""
    listed = list(dict.fromkeys(values))
    places = {value: number(value) for value in listed}
    if any(place is None for place in places.values()):
        return listed
    return sorted(listed, key=lambda value: places[value] or 0.0)


def _ramp(dark: bool) -> list[str]:
    """From the paper to one hue: told apart by lightness, whoever looks."""
    ends = [np.array([int(c[i : i + 2], 16) for i in (1, 3, 5)]) for c in _ends(dark)]
    return [
        "#" + "".join(f"{round(part):02x}" for part in ends[0] + (ends[1] - ends[0]) * step)
        for step in np.linspace(0, 1, STEPS)
    ]


def _ends(dark: bool) -> tuple[str, str]:
    return ("#16324a", "#9fd4ff") if dark else ("#eaf3fb", "#00508a")


def _ink(mean: float, low: float, high: float, dark: bool) -> str:
    """What can be read on a cell of that mean."""
    is_far = high > low and (mean - low) / (high - low) > 0.5
    return "#101418" if is_far == dark else "#ffffff"


def _interval(each: Figure) -> str:
    if not np.isfinite(each.low) or each.low == each.high:
        return "–"
    return f"{theme.figure(each.low)} to {theme.figure(each.high)}"
