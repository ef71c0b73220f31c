"""The schedule view."""

from widgets.schedule.draw import draw
from widgets.schedule.fold import QUESTION, Schedule
from widgets.view import View

VIEW = View("schedule", QUESTION, Schedule, draw, whole=True)
