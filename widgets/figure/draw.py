"""`figure`: a chart as a Bokeh figure with hover, zoom and save, to compose as one likes."""

from typing import Any

import numpy as np
from bokeh.layouts import gridplot
from bokeh.models import (
    AdaptiveTicker,
    ColumnDataSource,
    FixedTicker,
    HoverTool,
    Label,
    Legend,
    LegendItem,
    Node,
    NumeralTickFormatter,
    Span,
    Whisker,
)
from bokeh.plotting import figure as bokeh_figure

from widgets import theme
from widgets.chart.picture import Limit
from widgets.figure.limits import free, late, near
from widgets.figure.panel import Panel, Series, Shown, panels, unit

WIDTH, HEIGHT = 560, 340  # pixels of a panel, unless told otherwise
TOOLS = "pan,box_zoom,wheel_zoom,reset,save"
ACROSS = 3  # panels beside one another, of more
FEW = 20  # points of a line whose intervals are drawn one by one as well as as a band
BYTES = "0.[0] ib"
ROW = 15  # pixels from the label of one upright line down to that of the next
HEADROOM = 0.25  # of the points' extent left free above and below, where uprights are named
MOST_TICKS = 10  # of a logarithmic axis that has one at each point


def figure(shown: Shown, *, dark: bool = False, width: int = WIDTH, height: int = HEIGHT) -> Any:
    """A Bokeh figure of one panel, or a grid of them with one toolbar where there are several.

    `shown`: a `Panel` or several, a chart's `Picture`, or the frame of the curves view. Data keep
    their own units (seconds, bytes): what is added to a figure goes in the same. Raises BadInput
    where there is nothing to draw.
    """
    drawn = [draw(panel, dark=dark, width=width, height=height) for panel in panels(shown)]
    if len(drawn) == 1:
        return drawn[0]
    return gridplot(drawn, ncols=min(ACROSS, len(drawn)), merge_tools=True)  # type: ignore[arg-type]


def draw(panel: Panel, *, dark: bool = False, width: int = WIDTH, height: int = HEIGHT) -> Any:
    """One panel as a `bokeh.plotting.figure`."""
    made = bokeh_figure(
        title=panel.title,
        width=width,
        height=height,
        tools=TOOLS,
        x_axis_type="log" if panel.log_x else "linear",
        y_axis_type="log" if panel.log_y else "linear",
        x_axis_label=panel.x,
        y_axis_label=panel.y,
    )
    items = []
    for series in panel.series:
        found = _finite(series, panel)
        if len(found["x"]):
            items.append(
                LegendItem(label=series.name, renderers=_line(made, panel, series, found, dark))
            )
    taken: list[tuple[str, float]] = []
    uprights = sorted(limit.value for limit in panel.limits if limit.vertical)
    for limit in panel.limits:
        row = uprights.index(limit.value) if limit.vertical else 0
        spot = ("right", row) if limit.vertical else free(panel, limit.value, taken)
        _limit(made, limit, dark, late(panel, limit.value), spot)
        if not limit.vertical and near(panel, limit.value):  # a range of data knows no spans
            made.scatter([panel.series[0].x[0]], [limit.value], size=1, alpha=0)
    if any(limit.vertical for limit in panel.limits) and not panel.log_y:
        made.y_range.range_padding = HEADROOM
    for dot in panel.dots:
        _dot(made, dot.x, dot.y, dot.text, dark)
    if len(items) > 1:
        made.add_layout(Legend(items=items, click_policy="hide", spacing=0), "right")
    if panel.zero and not panel.log_y:
        _from_nought(made, panel)
    _format(made, panel)
    paint(made, dark)
    return made


def _finite(series: Series, panel: Panel) -> dict[str, np.ndarray]:
    """The columns of a series without points that its axes cannot show."""
    count = len(series.x)
    none = np.full(count, np.nan)
    columns = {
        "x": np.asarray(series.x, float),
        "y": np.asarray(series.y, float),
        "low": none if series.low is None else np.asarray(series.low, float),
        "high": none if series.high is None else np.asarray(series.high, float),
    }
    seen = np.isfinite(columns["x"]) & np.isfinite(columns["y"])
    if panel.log_x:
        seen &= columns["x"] > 0
    if panel.log_y:
        seen &= columns["y"] > 0
    return {name: column[seen] for name, column in columns.items()}


def _line(
    made: Any, panel: Panel, series: Series, found: dict[str, np.ndarray], dark: bool
) -> list[Any]:
    """The line, its points and its intervals; what the legend hides together."""
    hues, faint = theme.hues(dark), theme.scheme(dark).faint
    color = faint if series.bound else hues[series.hue % len(hues)]
    x_unit, y_unit = unit(panel.x), unit(panel.y)
    has = np.isfinite(found["low"]) & np.isfinite(found["high"])
    said = [
        f"{theme.figure(low, y_unit)} to {theme.figure(high, y_unit)}" if inside else "–"
        for low, high, inside in zip(found["low"], found["high"], has, strict=True)
    ]
    source = ColumnDataSource({
        **found,
        "of": [series.name] * len(said),
        "x_said": [theme.figure(x, x_unit) for x in found["x"]],
        "y_said": [theme.figure(y, y_unit) for y in found["y"]],
        "interval": said,
    })  # fmt: skip
    dash = "dashed" if series.modelled else "dotted" if series.bound else "solid"
    look = {"line_color": color, "line_width": 1 if series.bound else 2, "line_dash": dash}
    if series.step:
        drawn = [made.step("x", "y", source=source, mode="after", **look)]
    else:
        drawn = [made.line("x", "y", source=source, **look)]
    few = len(said) <= FEW
    if few and not series.bound and not series.step:
        paper = theme.scheme(dark).paper
        drawn.append(made.scatter(
            "x", "y", source=source, size=6, line_color=color,
            fill_color=paper if series.modelled else color,
        ))  # fmt: skip
    if has.any():
        shown = {name: found[name][has] for name in ("x", "low", "high")}
        band = made.varea(
            "x", "low", "high", source=ColumnDataSource(shown), fill_color=color, fill_alpha=0.16
        )
        drawn.append(band)
        if few:
            _whiskers(made, shown, color)
    tips = [
        (panel.x or "x", "@x_said"),
        (panel.y or "y", "@y_said"),
    ]
    tips += [("interval", "@interval")] if has.any() else []
    made.add_tools(HoverTool(
        renderers=[drawn[0]], tooltips=[("", "@of"), *tips], mode="mouse", line_policy="nearest",
        visible=False,
    ))  # fmt: skip
    return drawn


def _whiskers(made: Any, shown: dict[str, np.ndarray], color: str) -> None:
    source = ColumnDataSource(shown)
    bar = Whisker(
        base="x", lower="low", upper="high", source=source, line_color=color, line_alpha=0.7
    )
    for head in (bar.lower_head, bar.upper_head):
        head.update(size=6, line_color=color, line_alpha=0.7)
    made.add_layout(bar)


def _limit(made: Any, limit: Limit, dark: bool, is_late: bool, spot: tuple[str, int]) -> None:
    """A straight line with its label: of an upright one in a row from the top, left of it if
    `is_late`; of a level one at a side of the frame, above (1) or below (-1) it."""
    ink = theme.scheme(dark).ink
    dimension = "height" if limit.vertical else "width"
    made.add_layout(Span(
        location=limit.value, dimension=dimension, line_color=ink, line_width=1, line_dash="dotdash"
    ))  # fmt: skip
    at: dict[str, Any] = {"x": limit.value, "y": Node(target="frame", symbol="top"), "x_offset": 4}
    if limit.vertical:
        at |= {"text_baseline": "top", "y_offset": -4 - ROW * spot[1]}
        at |= {"x_offset": -4, "text_align": "right"} if is_late else {}
    else:
        side, up = spot
        at = {"x": Node(target="frame", symbol=side), "y": limit.value, "text_align": side,
              "x_offset": -4 if side == "right" else 4, "y_offset": 3 * up,
              "text_baseline": "bottom" if up > 0 else "top"}  # fmt: skip
    made.add_layout(Label(text=limit.text, text_font_size="12px", text_color=ink,
                          text_font=theme.FONT, **at))  # fmt: skip


def _dot(made: Any, x: float, y: float, text: str, dark: bool) -> None:
    ink = theme.scheme(dark).ink
    made.scatter([x], [y], size=6, line_color=ink, fill_color=ink)
    made.add_layout(Label(x=x, y=y, x_offset=7, y_offset=-6, text=text, text_font_size="12px",
                          text_color=ink, text_font=theme.FONT))  # fmt: skip


def _from_nought(made: Any, panel: Panel) -> None:
    """A linear y axis that starts at nought unless something lies below it."""
    lows = [s.y if s.low is None else np.minimum(s.y, np.nan_to_num(s.low, nan=np.inf))
            for s in panel.series]  # fmt: skip
    least = min((float(np.nanmin(low)) for low in lows if np.isfinite(low).any()), default=0.0)
    if least >= 0:
        made.y_range.start = 0.0


def _format(made: Any, panel: Panel) -> None:
    """Shares as per cent and bytes by powers of two; a logarithmic x axis of few points has its
    ticks there; other units are as Bokeh writes numbers."""
    for axis, label, is_log in (
        (made.xaxis, panel.x, panel.log_x), (made.yaxis, panel.y, panel.log_y),
    ):  # fmt: skip
        of = unit(label)
        if of in ("%", "B") and not is_log:
            axis.formatter = NumeralTickFormatter(format="0.[0] %" if of == "%" else BYTES)
            axis.axis_label = label[: -len(f" ({of})")]
        if of == "B" and not is_log:
            axis.ticker = AdaptiveTicker(base=2, mantissas=[1])
    places = np.unique(np.concatenate([np.zeros(0), *(series.x for series in panel.series)]))
    if panel.log_x and len(places) <= MOST_TICKS:
        made.xaxis.ticker = made.xgrid.ticker = FixedTicker(ticks=places.tolist())


def paint(made: Any, dark: bool) -> None:
    """The colours and the font of a theme on a figure."""
    scheme = theme.scheme(dark)
    made.background_fill_color = made.border_fill_color = scheme.paper
    made.outline_line_color = scheme.line
    made.title.update(text_color=scheme.ink, text_font=theme.FONT, text_font_size="14px")
    for axis in made.axis:
        axis.update(
            axis_label_text_color=scheme.faint, axis_label_text_font=theme.FONT,
            axis_label_text_font_style="normal", axis_label_text_font_size="12px",
            major_label_text_color=scheme.faint, major_label_text_font=theme.FONT,
            major_label_text_font_size="12px", axis_line_color=scheme.line,
            major_tick_line_color=scheme.line, minor_tick_line_color=None,
        )  # fmt: skip
    made.grid.grid_line_color = scheme.line
    for legend in made.legend:
        legend.update(
            label_text_color=scheme.ink, label_text_font=theme.FONT, label_text_font_size="12px",
            background_fill_color=scheme.paper, background_fill_alpha=0.85,
            border_line_color=scheme.line,
        )  # fmt: skip
