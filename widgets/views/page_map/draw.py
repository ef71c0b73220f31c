"""The cache view's drawing: cells, icicle, levels and decisions on canvases."""

from widgets.canvas.drawing import CanvasDrawing
from widgets.views.page_map.detail import reduce


def draw() -> CanvasDrawing:
    return CanvasDrawing("page_map", reduce, height=680)
