"""The roofline view."""

from widgets.view import View
from widgets.views.roofline.draw import draw
from widgets.views.roofline.explain import EXPLAIN
from widgets.views.roofline.fold import QUESTION, RooflineFold

VIEW = View("roofline", QUESTION, RooflineFold, draw, explain=EXPLAIN)
