"""The attention-cache view."""

from widgets.view import View
from widgets.views.page_map.draw import draw
from widgets.views.page_map.explain import EXPLAIN
from widgets.views.page_map.fold import QUESTION, PageMap

VIEW = View("page_map", QUESTION, PageMap, draw, explain=EXPLAIN)
