"""The drawing of modules: a grid of layers by tokens for each text, dark where the big one ran."""

from widgets.canvas.drawing import CanvasDrawing


def draw() -> CanvasDrawing:
    """An empty drawing."""
    return CanvasDrawing("modules", height=420)
