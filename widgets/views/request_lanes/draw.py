"""The drawing of the request lanes: a strip of steps over one lane for each request."""

from widgets.canvas.drawing import CanvasDrawing
from widgets.views.request_lanes.detail import reduce


def draw() -> CanvasDrawing:
    return CanvasDrawing("request_lanes", reduce)
