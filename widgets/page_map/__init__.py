"""The attention-cache view."""

from widgets.page_map.draw import draw
from widgets.page_map.fold import QUESTION, PageMap
from widgets.view import View

VIEW = View("page_map", QUESTION, PageMap, draw)
