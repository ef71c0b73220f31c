"""The thread view."""

from widgets.threads.draw import draw
from widgets.threads.fold import QUESTION, Threads
from widgets.view import View

VIEW = View("threads", QUESTION, Threads, draw, whole=True)
