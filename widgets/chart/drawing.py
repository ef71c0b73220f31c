"""Charts: a view's pictures drawn on a canvas, as every other view is.

`ChartDrawing` takes a view's `prepare` (once for every new frame) and `picture` (once for every
cursor); it is the `Drawing` of every chart view. What goes to the browser: `widgets.chart.plots`.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from widgets.canvas.drawing import CanvasDrawing, Figures, Frame
from widgets.chart.picture import Picture, Scales
from widgets.chart.plot_table import picture_csv
from widgets.chart.plots import frame_of

Prepare = Callable[[Frame], Frame]
Paint = Callable[[Frame, float, str], Picture]


class ChartDrawing(CanvasDrawing):
    """Draws pictures. `name`: the view's; `plot`: usual pixels of each plot's height; `height`: of
    the whole before there is a picture."""

    by_cursor = True

    def __init__(
        self,
        name: str,
        question: str,
        prepare: Prepare,
        picture: Paint,
        *,
        plot: int = 96,
        height: int = 390,
    ) -> None:
        def reduce(drawn: Frame, window: dict[str, Any]) -> Frame:
            recent = self._state["recent"]
            if recent and "start" not in window:
                span = {"start": max(0.0, self.cursor - recent), "stop": max(self.cursor, recent)}
                window = {**window, **span}
            return {**frame_of(drawn["picture"], window), "plot": plot}

        super().__init__("chart", reduce, height, {"name": name, "question": question})
        self.prepare, self.picture = prepare, picture
        self.shown = Picture(empty="Nothing to show yet.")
        self.scales: Scales | None = None  # shared with the drawings this one is compared with
        self.chosen, self.cursor = "", 0.0
        self._of: Frame | None = None  # the fold's frame that `_ready` was prepared from
        self._ready: Frame = {}

    def show(self, frame: Frame, cursor: float) -> None:
        """Draw the picture of `frame` at that cursor; sent is what differs from the one before."""
        self.cursor = cursor
        self._draw(self._at(frame, cursor, self.chosen))

    def choose(self, owner: str) -> None:
        super().choose(owner)
        if owner != self.chosen:
            self.chosen = owner
            self.redraw()

    def redraw(self) -> None:
        """Draw again what was drawn last, where something else than the frame has changed."""
        if self._of is not None:
            self._draw(self._at(self._of, self.cursor, self.chosen))

    def still(self, frame: Frame, cursor: float) -> tuple[Frame, Figures]:
        picture = self._at(frame, cursor, "")
        return self.reduce({"picture": picture}, {"static": True}), _figures(picture)

    def data(self) -> str:
        return picture_csv(self.shown)

    def _at(self, frame: Frame, cursor: float, chosen: str) -> Picture:
        if frame is not self._of:
            self._of, self._ready = frame, self.prepare(frame)
        return self.picture(self._ready, cursor, chosen)

    def _draw(self, picture: Picture) -> None:
        if self.scales is not None:
            fitted = tuple(self.scales.fit(id(self), plot) for plot in picture.plots)
            picture = replace(picture, plots=fitted)
        self.shown = picture
        changes = {"cursor": float(self.cursor), "figures": _figures(picture)}
        self.draw({"picture": picture}, changes)


def _figures(picture: Picture) -> Figures:
    return [[what, text] for text, what in picture.figures]
