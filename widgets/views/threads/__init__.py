"""The thread view."""

from widgets.view import View
from widgets.views.threads.draw import draw
from widgets.views.threads.explain import EXPLAIN
from widgets.views.threads.fold import QUESTION, Threads

VIEW = View("threads", QUESTION, Threads, draw, whole=True, explain=EXPLAIN)
