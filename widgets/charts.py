"""Charts: a view's pictures drawn with Bokeh, patched in place, in the page's colours.

`ChartDrawing` takes a view's `prepare` (once for every new frame) and `picture` (once for every
cursor) and shows the title, the figures and the plots; it is the `Drawing` of every chart view.
"""

import html
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import panel as pn
from bokeh.events import Tap
from bokeh.layouts import gridplot

from widgets import theme
from widgets.axes import Axes
from widgets.grip import Grip
from widgets.picture import Picture, Scales

Prepare = Callable[[dict[str, Any]], dict[str, Any]]
Paint = Callable[[dict[str, Any], float, str], Picture]


AXIS = 26  # pixels of the time axis under a stack of plots
LEAST = 60  # pixels of a plot
# Seconds between pictures of a run that goes on: to draw axes and lines anew takes Bokeh as long as
# a canvas view takes for many pictures, and what runs over time looks the same a moment later.
PAUSE = 0.2


class ChartDrawing:
    """Draws pictures. `height`: pixels of each plot; the last of a stack gets its axis on top."""

    pause = PAUSE

    def __init__(self, question: str, prepare: Prepare, picture: Paint, height: int = 96) -> None:
        self.question, self.prepare, self.picture, self.height = question, prepare, picture, height
        self.axes: list[Axes] = []
        self.shown: Picture = Picture(empty="Nothing to show yet.")
        self.scales: Scales | None = None  # shared with the drawings this one is compared with
        self.is_dark, self.chosen, self.cursor = False, "", 0.0
        self._frame: dict[str, Any] | None = None
        self._ready: dict[str, Any] = {}
        self._tell: Callable[[str], None] = _nobody
        self._seek: Callable[[float], None] = _nobody
        self._head = pn.pane.HTML(
            "", sizing_mode="stretch_width", margin=0, stylesheets=[_HEAD_CSS]
        )
        self._foot = pn.pane.HTML("", sizing_mode="stretch_width", margin=0, visible=False)
        self._pane = pn.pane.Bokeh(None, sizing_mode="stretch_width", margin=0)
        self._usual = height
        self._grip = Grip(question, visible=False)
        self._grip.param.watch(lambda event: self._resize(event.new), "wanted")
        self._panel = pn.Column(
            self._head, self._pane, self._foot, self._grip,
            sizing_mode="stretch_width", margin=(8, 16),
        )  # fmt: skip
        self._words()

    def show(self, frame: dict[str, Any], cursor: float) -> None:
        if frame is not self._frame:
            self._frame, self._ready = frame, self.prepare(frame)
        self.cursor = cursor
        self._draw(self.picture(self._ready, cursor, self.chosen))

    def _draw(self, picture: Picture) -> None:
        if self.scales is not None:
            fitted = tuple(self.scales.fit(id(self), plot) for plot in picture.plots)
            picture = replace(picture, plots=fitted)
        if self._pane.visible != bool(picture.plots):
            self._pane.visible = bool(picture.plots)
        if picture.plots:  # without any, the axes wait unseen for the next ones
            if [a.plot.shape for a in self.axes] != [p.shape for p in picture.plots]:
                self._make(picture)
            for axes, plot in zip(self.axes, picture.plots, strict=True):
                axes.show(plot, self.cursor)
        self.shown = picture
        self._words()

    def _make(self, picture: Picture) -> None:
        """New axes, only where a quantity came or went."""
        self.axes = []
        for place, plot in enumerate(picture.plots):
            last = picture.across or place == len(picture.plots) - 1
            height = self.height + (AXIS if last and not picture.across else 0)
            shared = None if picture.across or not self.axes else self.axes[0].range
            axes = Axes(plot, height, last, shared)
            axes.dark(self.is_dark)
            axes.pick.on_change("data", self._picked)
            if plot.timed:
                axes.figure.on_event(Tap, self._tapped)
            self.axes.append(axes)
        figures = [axes.figure for axes in self.axes]
        rows = 1 if picture.across else len(figures)
        self._grip.param.update(usual=self._usual * rows + AXIS, visible=bool(figures))
        # A grid has one toolbar for all, which saves all as one picture.
        self._pane.object = (
            figures
            and gridplot(
                figures,
                ncols=len(figures) if picture.across else 1,
                sizing_mode="stretch_width",
                toolbar_location="right",
                toolbar_options={"autohide": True, "logo": None},
            )
            or None
        )

    def _resize(self, wanted: float) -> None:
        """Make the plots together as high as a person dragged them; 0 is the usual height."""
        rows = 1 if self.shown.across else max(1, len(self.axes))
        self.height = max(LEAST, round((wanted - AXIS) / rows)) if wanted else self._usual
        for place, (axes, plot) in enumerate(zip(self.axes, self.shown.plots, strict=True)):
            last = not self.shown.across and place == len(self.axes) - 1
            axes.resize(self.height + (AXIS if last else 0))
            axes.show(plot, self.cursor)

    def _picked(self, attr: str, old: Any, new: Any) -> None:
        self._tell(new["owner"][0])

    def _tapped(self, event: Tap) -> None:
        if event.x is not None:
            self._seek(max(0.0, float(event.x)))

    def _words(self) -> None:
        """The title, the figures and the notes; sent only where they changed."""
        head = heading(self.shown.question or self.question, self.shown.figures, self.is_dark)
        if self._head.object != head:
            self._head.object = head
        words = self.shown.empty or self.shown.note
        faint = theme.scheme(self.is_dark).faint
        foot = f'<p style="margin:0;font:12px {theme.FONT};color:{faint}">{html.escape(words)}</p>'
        if self._foot.object != foot:
            self._foot.object = foot
        if self._foot.visible != bool(words):
            self._foot.visible = bool(words)

    def choose(self, owner: str) -> None:
        if owner != self.chosen:
            self.chosen = owner
            if self._frame is not None:
                self._draw(self.picture(self._ready, self.cursor, owner))

    def on_choose(self, tell: Callable[[str], None]) -> None:
        self._tell = tell

    def on_seek(self, tell: Callable[[float], None]) -> None:
        """Call `tell` with the moment a person clicked on the time axis."""
        self._seek = tell

    def dark(self, on: bool) -> None:
        self.is_dark = on
        for axes in self.axes:
            axes.dark(on)
        self._grip.is_dark = on
        self._words()

    def __panel__(self) -> Any:
        return self._panel


def heading(question: str, figures: tuple[tuple[str, str], ...], dark: bool) -> str:
    """A view's title, left, and its figures, right, as escaped HTML."""
    paint = theme.scheme(dark)
    shown = "".join(
        f'<span class="figure"><b>{html.escape(text)}</b> {html.escape(what)}</span>'
        for text, what in figures[:4]
    )
    style = f"--ink:{paint.ink};--faint:{paint.faint};--font:{theme.FONT}".replace('"', "'")
    return (
        f'<header style="{style}"><h3>{html.escape(question)}</h3>'
        f'<div class="figures">{shown}</div></header>'
    )


def _nobody(_: Any) -> None:
    """Where no page listens."""


_HEAD_CSS = """
header { display: flex; align-items: baseline; gap: 8px 24px; flex-wrap: wrap;
  font-family: var(--font); color: var(--ink); padding: 0 0 6px; }
h3 { font-size: 15px; font-weight: 600; margin: 0; flex: 1 1 auto; }
.figures { display: flex; gap: 18px; flex-wrap: wrap; justify-content: flex-end; }
.figure { font-size: 12px; color: var(--faint); text-align: right; white-space: nowrap;
  font-variant-numeric: tabular-nums; }
.figure b { font-size: 15px; font-weight: 600; color: var(--ink); }
"""
