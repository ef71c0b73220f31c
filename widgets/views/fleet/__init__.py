"""The fleet view."""

from widgets.canvas.drawing import CanvasDrawing
from widgets.view import View
from widgets.views.fleet.explain import EXPLAIN
from widgets.views.fleet.fold import QUESTION, Fleet

VIEW = View("fleet", QUESTION, Fleet, lambda: CanvasDrawing("fleet", height=480), explain=EXPLAIN)
