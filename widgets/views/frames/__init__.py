"""The frames view."""

from widgets.view import View
from widgets.views.frames.draw import draw
from widgets.views.frames.explain import EXPLAIN
from widgets.views.frames.fold import QUESTION, FrameStrip

VIEW = View("frames", QUESTION, FrameStrip, draw, explain=EXPLAIN)
