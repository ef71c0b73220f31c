"""The charts of a finished run, by the name of their view: `latency`, `levels` or `curves`."""

from typing import Any

from engine.core.errors import BadInput
from engine.core.log import Log
from engine.core.names import suggest
from widgets.chart.drawing import ChartDrawing
from widgets.figure.draw import figure
from widgets.figure.panel import Shown
from widgets.fold import History
from widgets.view import view, views

CURVES = "curves"  # a view of lines whose frame is its chart already


def charts() -> list[str]:
    """The names of views whose data are lines."""
    return [name for name, one in views().items() if _is_chart(one.draw()) or name == CURVES]


def chart(log: Log, name: str) -> Shown:
    """What the view `name` shows at the end of `log`. Raises BadInput for a view without lines."""
    if name not in charts():
        raise BadInput(f"figure {name!r}: no chart of that name; {suggest(name, charts())}")
    one = view(name)
    frame = History(log, one.fold()).at(log.duration).frame()
    drawing = one.draw()
    if isinstance(drawing, ChartDrawing):
        return drawing.picture(drawing.prepare(frame), log.duration, "")
    return frame


def figure_of(log: Log, name: str, *, dark: bool = False, **size: int) -> Any:
    """The chart `name` of a run as a Bokeh figure; `size`: `width` and `height` in pixels."""
    return figure(chart(log, name), dark=dark, **size)


def _is_chart(drawing: Any) -> bool:
    return isinstance(drawing, ChartDrawing)
