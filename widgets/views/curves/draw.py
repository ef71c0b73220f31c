"""The drawing of curves: small multiples of lines, as many beside one another as fit."""

from widgets.canvas.drawing import CanvasDrawing

HEIGHT = 420  # pixels


def draw() -> CanvasDrawing:
    """An empty drawing."""
    return CanvasDrawing("curves", height=HEIGHT)
