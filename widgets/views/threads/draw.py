"""The drawing of the thread view: a lane for each thread, and beside it who sees which block."""

from widgets.canvas.drawing import CanvasDrawing
from widgets.views.threads.detail import reduce


def draw() -> CanvasDrawing:
    return CanvasDrawing("threads", reduce)
