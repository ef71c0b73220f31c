"""The curves view."""

from widgets.view import View
from widgets.views.curves.draw import draw
from widgets.views.curves.explain import EXPLAIN
from widgets.views.curves.fold import QUESTION, Curves

VIEW = View("curves", QUESTION, Curves, draw, explain=EXPLAIN)
