"""Drawing of a run's levels: small plots under one another over one time axis."""

from widgets.charts import ChartDrawing
from widgets.levels.fold import LevelsFold
from widgets.levels.picture import picture, prepare
from widgets.view import View

QUESTION = "How full is the engine, and what waits?"


def draw() -> ChartDrawing:
    """An empty drawing."""
    return ChartDrawing("levels", QUESTION, prepare, picture)


VIEW = View("levels", QUESTION, LevelsFold, draw, whole=True)
