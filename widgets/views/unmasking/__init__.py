"""The unmasking view."""

from widgets.view import View
from widgets.views.unmasking.draw import draw
from widgets.views.unmasking.explain import EXPLAIN
from widgets.views.unmasking.fold import QUESTION, UnmaskingGrid

VIEW = View("unmasking", QUESTION, UnmaskingGrid, draw, explain=EXPLAIN)
