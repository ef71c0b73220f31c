"""The request-lanes view."""

from widgets.request_lanes.draw import draw
from widgets.request_lanes.fold import QUESTION, RequestLanes
from widgets.view import View

VIEW = View("request_lanes", QUESTION, RequestLanes, draw, whole=True)
