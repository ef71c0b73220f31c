"""The drawing of a schedule: a row for each lane, its spans, and its memory under them."""

from widgets.canvas import CanvasDrawing
from widgets.schedule.detail import reduce


def draw() -> CanvasDrawing:
    """An empty drawing."""
    return CanvasDrawing("schedule", reduce)
