"""Drawing of latencies: one quantile curve for each kind, side by side."""

from typing import Any

from widgets.chart.drawing import ChartDrawing
from widgets.chart.picture import Picture
from widgets.view import View
from widgets.views.latency.explain import EXPLAIN
from widgets.views.latency.fold import KINDS, LatencyFold
from widgets.views.latency.picture import LIMIT, picture, prepare

QUESTION = "How long do requests wait, and how long for the slowest?"


class LatencyDrawing(ChartDrawing):
    """Quantile curves with, where a person asks for them, promised latencies."""

    def __init__(self) -> None:
        self.promises: dict[str, float] = {}
        self._limits: dict[str, float] = {}  # those that the browser told last
        super().__init__("latency", QUESTION, prepare, self._picture, plot=210, height=290)
        self.on_window(self._promised)

    def _picture(self, ready: dict[str, Any], cursor: float, chosen: str) -> Picture:
        return picture(ready, cursor, chosen, self.promises)

    def _promised(self, window: dict[str, Any]) -> None:
        """A person dragged a limit: it is drawn, and who kept it is counted."""
        told = {
            kind: float(window[name])
            for name, kind in ((f"{LIMIT}{place}", kind) for place, kind in enumerate(KINDS))
            if isinstance(window.get(name), int | float) and window[name] > 0
        }
        if told != self._limits:
            self._limits = told
            self.promises = dict(told)
            self.redraw()

    def promise(self, kind: str, seconds: float | None) -> None:
        """Draw a line at this latency with the share of requests that kept it; None removes it."""
        self.promises.pop(kind, None)
        if seconds is not None:
            self.promises[kind] = seconds
        self.redraw()


VIEW = View("latency", QUESTION, LatencyFold, LatencyDrawing, whole=True, explain=EXPLAIN)
