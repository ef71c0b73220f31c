"""The drawing of unmasking: for each text a grid of steps by positions, darker once decided."""

from widgets.canvas.drawing import CanvasDrawing


def draw() -> CanvasDrawing:
    """An empty drawing."""
    return CanvasDrawing("unmasking", height=420)
