"""The drawing of frames: a strip of those shown, under each what was thrown away for it."""

from widgets.canvas.drawing import CanvasDrawing


def draw() -> CanvasDrawing:
    """An empty drawing."""
    return CanvasDrawing("frames", height=420)
