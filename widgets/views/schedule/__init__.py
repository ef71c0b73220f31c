"""The schedule view."""

from widgets.view import View
from widgets.views.schedule.draw import draw
from widgets.views.schedule.explain import EXPLAIN
from widgets.views.schedule.fold import QUESTION, Schedule

VIEW = View("schedule", QUESTION, Schedule, draw, whole=True, explain=EXPLAIN)
