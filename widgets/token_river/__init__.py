"""The token-river view."""

from widgets.token_river.draw import draw
from widgets.token_river.fold import QUESTION, TokenRiver
from widgets.view import View

VIEW = View("token_river", QUESTION, TokenRiver, draw, whole=True)
