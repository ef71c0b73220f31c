"""The curves view."""

from widgets.curves.draw import draw
from widgets.curves.fold import QUESTION, Curves
from widgets.view import View

VIEW = View("curves", QUESTION, Curves, draw)
