"""The drawing of traffic: who sent how much to whom, as a ring of ends or as a matrix."""

from widgets.canvas.drawing import CanvasDrawing


def draw() -> CanvasDrawing:
    """An empty drawing."""
    return CanvasDrawing("topology", height=480)
