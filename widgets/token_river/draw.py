"""The drawing of the token river: ticks that become text, and the chosen request to read."""

from widgets.canvas import CanvasDrawing
from widgets.token_river.detail import reduce


def draw() -> CanvasDrawing:
    return CanvasDrawing("token_river", reduce)
