"""Drawing of a run's levels: small plots under one another over one time axis."""

from widgets.chart.drawing import ChartDrawing
from widgets.view import View
from widgets.views.levels.explain import EXPLAIN
from widgets.views.levels.fold import LevelsFold
from widgets.views.levels.picture import picture, prepare

QUESTION = "How full is the engine, and what waits?"


def draw() -> ChartDrawing:
    """An empty drawing."""
    return ChartDrawing("levels", QUESTION, prepare, picture)


VIEW = View("levels", QUESTION, LevelsFold, draw, whole=True, explain=EXPLAIN)
