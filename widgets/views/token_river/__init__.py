"""The token-river view."""

from widgets.view import View
from widgets.views.token_river.draw import draw
from widgets.views.token_river.explain import EXPLAIN
from widgets.views.token_river.fold import QUESTION, TokenRiver

VIEW = View("token_river", QUESTION, TokenRiver, draw, whole=True, explain=EXPLAIN)
