"""The roofline view."""

from widgets.roofline.draw import draw
from widgets.roofline.fold import QUESTION, RooflineFold
from widgets.view import View

VIEW = View("roofline", QUESTION, RooflineFold, draw)
