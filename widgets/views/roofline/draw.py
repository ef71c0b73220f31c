"""The drawing of the roofline: roofs and marks on log axes, and the table of what loses time.

Compared with other runs, each drawing shows the others' marks as ghosts on axes they share.
"""

from typing import Any

from widgets.canvas.drawing import CanvasDrawing
from widgets.chart.picture import Scales

HEIGHT = 520  # pixels
GHOST = ("title", "thread", "phase", "hue", "x", "y", "seconds", "modelled", "part")


class RooflineDrawing(CanvasDrawing):
    """A canvas that also knows the marks of the runs it is compared with."""

    def __init__(self) -> None:
        super().__init__("roofline", height=HEIGHT)
        self.scales: Scales | None = None
        self._own: dict[str, Any] | None = None
        self._others: list[dict[str, Any]] = []
        self._sent: dict[str, Any] | None = None

    def show(self, frame: dict[str, Any], cursor: float) -> None:
        """Draw `frame`, with the marks of the compared runs as ghosts."""
        if self.scales is None:
            super().show(frame, cursor)
            return
        self.scales.lent[id(self)] = frame
        others = [lent for who, lent in self.scales.lent.items() if who != id(self)]
        same = len(others) == len(self._others) and all(
            one is other for one, other in zip(others, self._others, strict=True)
        )
        if self._sent is None or frame is not self._own or not same:
            self._own, self._others = frame, others
            ghosts = [_ghost(mark) for lent in others for mark in lent["marks"]]
            self._sent = {**frame, "ghosts": ghosts}
        super().show(self._sent, cursor)


def _ghost(mark: dict[str, Any]) -> dict[str, Any]:
    return {name: mark[name] for name in GHOST}


def draw() -> RooflineDrawing:
    """An empty drawing."""
    return RooflineDrawing()
