"""The drawing of the token river: ticks that become text, and the chosen request to read."""

from widgets.canvas.drawing import CanvasDrawing
from widgets.views.token_river.detail import reduce


def draw() -> CanvasDrawing:
    return CanvasDrawing("token_river", reduce)
