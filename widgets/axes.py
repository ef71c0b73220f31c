"""One pair of Bokeh axes for one `Plot`: made once, then only patched."""

import html

from bokeh.core.enums import Dimensions
from bokeh.core.properties import value
from bokeh.models import (
    BasicTicker,
    BoxZoomTool,
    ColumnDataSource,
    CustomJS,
    CustomJSTickFormatter,
    FixedTicker,
    HoverTool,
    Label,
    LinearAxis,
    Node,
    Range1d,
    ResetTool,
    SaveTool,
    Span,
)
from bokeh.plotting import figure as bokeh_figure

from widgets import theme
from widgets.picture import Line, Plot, colour, spread, ticks
from widgets.sources import mark, patch

TEXT = "12px"
DASH = [6, 3]
MARGIN_LEFT, MARGIN_RIGHT = 52, 66  # pixels kept for tick labels and for readings
PAD = 1.09  # the time axis goes on a little: that is where the names of lines stand
HEADROOM = 0.05  # of the height, so that lines at nought and at the top are whole
FONT = theme.FONT.replace("'", "")  # as a style attribute takes it
LABEL_GAP = 15  # pixels between neighbouring names
# What `theme.figure` does, for ticks that zooming makes; seconds and plain numbers only.
TICKS = """
const units = unit === "s" ? [[1e-9, "ns"], [1e-6, "µs"], [1e-3, "ms"], [1, "s"]]
  : [[1, ""], [1e3, "k"], [1e6, "M"], [1e9, "G"]];
if (unit === "%") return Math.round(tick * 100) + " %";
if (tick === 0) return "0";
const size = Math.abs(reach || tick);
let best = units[0];
for (const pair of units) if (size >= pair[0] * 0.9995) best = pair;
if (unit !== "s" && size < 1e4) best = [1, ""];
return (Number((tick / best[0]).toPrecision(6)) + " " + best[1]).trim();
"""


class Axes:
    """A figure, its sources and its moving parts. `pick` receives the owner under the pointer."""

    def __init__(self, plot: Plot, height: int, last: bool, shared: Range1d | None = None) -> None:
        self.plot, self.is_dark, self._limits = plot, False, []
        self.range = shared or Range1d(0, 1)
        self._right = -1.0
        self.pick = ColumnDataSource({"owner": [""]})
        self.figure = bokeh_figure(
            height=height,
            sizing_mode="stretch_width",
            x_range=self.range,
            y_range=Range1d(0, 1),
            tools="",
            title=plot.title,
            min_border_left=MARGIN_LEFT,
            min_border_right=MARGIN_RIGHT if plot.readings else 8,
            min_border_top=4,
            min_border_bottom=4,
            toolbar_location=None,
        )
        self.cursor = Span(location=0, dimension="height", line_width=1, visible=plot.timed)
        self.figure.add_layout(self.cursor)
        self.sources = [ColumnDataSource({"x": [], "y": []}) for _ in plot.lines]
        self.glyphs = [
            self._line(source, line) for source, line in zip(self.sources, plot.lines, strict=True)
        ]
        self.names = [self._name(line) for line in plot.lines] if plot.timed else []
        self.dots = ColumnDataSource({"x": [], "y": [], "text": [], "dx": [], "align": []})
        self._dots()
        self._tools(last)
        self._style(last)
        self.dark(False)

    def _line(self, source: ColumnDataSource, line: Line):
        draw = self.figure.step if line.step else self.figure.line
        more = {"mode": "after"} if line.step else {}
        return draw("x", "y", source=source, line_width=1.6, **more)

    def _name(self, line: Line) -> Label:
        label = Label(
            x=Node.frame.right, y=0, x_offset=-2, text=line.name, text_baseline="middle",
            text_align="right", text_font_size=TEXT, text_font=theme.FONT,
            background_fill_alpha=0.75,
        )  # fmt: skip
        self.figure.add_layout(label)
        return label

    def _dots(self) -> None:
        self.readings = ColumnDataSource({"x": [], "y": []})
        self.marks = [
            self.figure.scatter("x", "y", source=source, size=7)
            for source in (self.dots, self.readings)
        ]
        self.words = self.figure.text(
            "x", "y", "text", source=self.dots, x_offset="dx", text_align="align", y_offset=3,
            text_baseline="top", text_font_size=TEXT, text_font=value(theme.FONT),
            background_fill_alpha=0.75,
        )  # fmt: skip

    def _tools(self, last: bool) -> None:
        """A reading under the pointer; zoom along time; the owner under the pointer into `pick`."""
        hits = [
            self.figure.scatter("x", "y", source=source, size=8, alpha=0, hover_alpha=0.6)
            for source in self.sources
        ]
        for place, (line, hit) in enumerate(zip(self.plot.lines, hits, strict=True)):
            name = html.escape(line.name).replace("@", "&#64;").replace("$", "&#36;")
            read = f"@y{{0,0.[0]}} {name}" if self.plot.timed else "@owner, @x{0.0000} s"
            hover = HoverTool(
                renderers=[hit],
                tooltips=f'<span style="font:{TEXT} {FONT}">{read}</span>',
                mode="vline" if self.plot.timed else "mouse",
                attachment=("above", "below", "left", "right")[place % 4],
            )
            if not self.plot.timed and place == 0:
                hover.callback = CustomJS(
                    args={"source": self.sources[0], "pick": self.pick},
                    code="""const found = source.inspected.indices
const owner = found.length ? source.data.owner[found[0]] : ""
if (owner !== pick.data.owner[0]) pick.data = {owner: [owner]}""",
                )
            self.figure.add_tools(hover)
        zoom = BoxZoomTool(dimensions="width") if self.plot.timed else BoxZoomTool()
        self.figure.add_tools(zoom, ResetTool(), SaveTool())
        self.figure.toolbar.active_drag = zoom if self.plot.timed else None

    def _style(self, last: bool) -> None:
        f, plot = self.figure, self.plot
        if plot.readings:
            f.add_layout(LinearAxis(), "right")
        f.title.text_font, f.title.text_font_size = theme.FONT, TEXT
        f.title.text_font_style, f.title.offset = "normal", 0
        f.outline_line_color = None
        f.xaxis.visible = last
        f.xaxis.ticker = BasicTicker(desired_num_ticks=6 if plot.timed else 3, mantissas=[1, 2, 5])

        for axis in (*f.xaxis, *f.yaxis):
            axis.major_label_text_font = axis.axis_label_text_font = theme.FONT
            axis.major_label_text_font_size = axis.axis_label_text_font_size = TEXT
            axis.axis_label_text_font_style = "normal"
            axis.minor_tick_line_color = axis.axis_line_color = None
            axis.major_tick_line_color = None
            axis.axis_label_standoff = 2
        f.xgrid.grid_line_color = None
        self.formatter = CustomJSTickFormatter(code=TICKS)
        f.xaxis.formatter = self.formatter
        self.lines_across = FixedTicker()
        f.ygrid.ticker = self.lines_across
        for axis in f.yaxis:
            axis.ticker = FixedTicker()

    def resize(self, height: int) -> None:
        """As high as this from the next `show` on, which sets its labels apart anew."""
        self.figure.height = height
        self.readings.data = {"x": [], "y": []}

    def show(self, plot: Plot, cursor: float) -> None:
        """Patch what differs from the plot shown before; same shape, or make new axes."""
        if plot.right != self._right:
            self._right = plot.right
            end = plot.right * (PAD if plot.timed else 1.0)
            self.range.update(start=0, end=end, reset_start=0, reset_end=end)
        end = plot.top * (1 + HEADROOM)
        if self.figure.y_range.end != end:
            start = -plot.top * HEADROOM
            self.figure.y_range.update(start=start, end=end, reset_start=start, reset_end=end)
        self._ticks(plot)
        for glyph, source, line in zip(self.glyphs, self.sources, plot.lines, strict=True):
            dash = DASH if line.modelled else []
            if glyph.glyph.line_dash != dash:
                glyph.glyph.line_dash = dash
            patch(source, line, plot.owners if not plot.timed else ())
        self._place_names(plot)
        if plot.dots != self.plot.dots or len(self.dots.data["x"]) != len(plot.dots):
            self._show_dots(plot)
        if plot.limits != self.plot.limits or len(plot.limits) != len(self._limits):
            self._show_limits(plot)
        if plot.timed and self.cursor.location != cursor:
            self.cursor.location = cursor
        self.plot = plot

    def _ticks(self, plot: Plot) -> None:
        # Changed in place: a new model would make Bokeh walk through all of the page's.
        args = {"unit": plot.x_unit, "reach": plot.right}
        if self.formatter.args != args:
            self.formatter.args = args
        if plot.readings:
            self._read(plot)
            return
        wanted = ticks(0, plot.top, 2 if plot.timed else 4)
        mark(self.figure.yaxis[0], wanted, [theme.figure(tick, plot.y_unit) for tick in wanted])
        if self.lines_across.ticks != wanted:
            self.lines_across.ticks = wanted

    def _read(self, plot: Plot) -> None:
        """Names of the readings on the left axis, their values on the right one, dots between."""
        if plot.readings == self.plot.readings and len(self.readings.data["x"]):
            return
        inner = self.figure.height - 60
        heights = [r.y / plot.top for r in plot.readings]
        exact = [r.y for r in plot.readings]
        shown = [h * plot.top for h in spread(heights, LABEL_GAP / inner, 0, 1 + HEADROOM)]
        mark(self.figure.yaxis[0], shown, [r.name for r in plot.readings])
        mark(self.figure.yaxis[1], shown, [r.value for r in plot.readings])
        if self.lines_across.ticks != exact:
            self.lines_across.ticks = exact
        self.readings.data = {"x": [r.x for r in plot.readings], "y": exact}

    def _place_names(self, plot: Plot) -> None:
        if not self.names:
            return
        inner = self.figure.height - (56 if self.figure.xaxis[0].visible else 30)
        ends = [float(line.y[-1]) / plot.top * inner if len(line.y) else 0.0 for line in plot.lines]
        for label, line, at in zip(
            self.names, plot.lines, spread(ends, LABEL_GAP, 5, inner), strict=True
        ):
            height = at / inner * plot.top
            if abs(label.y - height) > plot.top * 0.01:
                label.y = height
            text = line.name if len(line.x) else ""
            if label.text != text:
                label.text = text

    def _show_dots(self, plot: Plot) -> None:
        far = [dot.x > 0.58 * plot.right for dot in plot.dots]
        self.dots.data = {
            "x": [dot.x for dot in plot.dots],
            "y": [dot.y for dot in plot.dots],
            "text": [dot.text for dot in plot.dots],
            "dx": [-8 if f else 8 for f in far],
            "align": ["right" if f else "left" for f in far],
        }

    def _show_limits(self, plot: Plot) -> None:
        same = [limit.vertical for limit in plot.limits] == [
            span.dimension == "height" for span, _ in self._limits
        ]
        if same:
            for limit, (span, label) in zip(plot.limits, self._limits, strict=True):
                span.location, label.text = limit.value, limit.text
                label.update(**({"x": limit.value} if limit.vertical else {"y": limit.value}))
            return
        for span, label in self._limits:
            self.figure.center.remove(span)
            self.figure.center.remove(label)
        self._limits = []
        for limit in plot.limits:
            dimension: Dimensions = "height" if limit.vertical else "width"
            span = Span(location=limit.value, dimension=dimension, line_width=1, line_dash="dotted")
            where = (
                {
                    "x": limit.value,
                    "y": 0,
                    "y_offset": 2,
                    "x_offset": -4 if limit.value > 0.5 * plot.right else 4,
                    "text_align": "right" if limit.value > 0.5 * plot.right else "left",
                }
                if limit.vertical
                else {"x": Node.frame.left, "y": limit.value, "x_offset": 4, "y_offset": -14}
            )
            label = Label(text=limit.text, text_font_size=TEXT, text_font=theme.FONT, **where)
            self.figure.add_layout(span)
            self.figure.add_layout(label)
            self._limits.append((span, label))
        self.dark(self.is_dark)

    def dark(self, on: bool) -> None:
        """Recolour everything for the dark or light theme."""
        self.is_dark = on
        paint, f = theme.scheme(on), self.figure
        f.background_fill_color = f.border_fill_color = paint.paper
        f.title.text_color = paint.ink
        for axis in (*f.xaxis, *f.yaxis):
            axis.major_label_text_color = axis.axis_label_text_color = paint.faint
        f.ygrid.grid_line_color = paint.line
        self.cursor.line_color = paint.ink
        for place, (line, glyph) in enumerate(zip(self.plot.lines, self.glyphs, strict=True)):
            ink = colour(line.hue, on)
            glyph.glyph.line_color = ink
            if self.names:
                self.names[place].update(text_color=ink, background_fill_color=paint.paper)
        for dot in self.marks:
            dot.glyph.fill_color, dot.glyph.line_color = paint.ink, paint.paper
        self.words.glyph.text_color = paint.ink
        self.words.glyph.background_fill_color = paint.paper
        for span, label in self._limits:
            span.line_color = label.text_color = paint.faint
