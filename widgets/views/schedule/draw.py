"""The drawing of a schedule: a row for each lane, its spans, and its memory under them."""

from widgets.canvas.drawing import CanvasDrawing
from widgets.views.schedule.detail import reduce


def draw() -> CanvasDrawing:
    """An empty drawing."""
    return CanvasDrawing("schedule", reduce)
