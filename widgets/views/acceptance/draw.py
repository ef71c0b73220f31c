"""Drawing of acceptance: by a draft's place, and how many tokens a verification came to."""

from widgets.chart.drawing import ChartDrawing
from widgets.view import View
from widgets.views.acceptance.explain import EXPLAIN
from widgets.views.acceptance.fold import AcceptanceFold
from widgets.views.acceptance.picture import picture

QUESTION = "How far do drafts hold, and what does a verification come to?"


def draw() -> ChartDrawing:
    """Two charts side by side."""
    return ChartDrawing("acceptance", QUESTION, dict, picture, plot=190, height=270)


VIEW = View("acceptance", QUESTION, AcceptanceFold, draw, whole=True, explain=EXPLAIN)
