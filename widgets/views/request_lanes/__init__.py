"""The request-lanes view."""

from widgets.view import View
from widgets.views.request_lanes.draw import draw
from widgets.views.request_lanes.explain import EXPLAIN
from widgets.views.request_lanes.fold import QUESTION, RequestLanes

VIEW = View("request_lanes", QUESTION, RequestLanes, draw, whole=True, explain=EXPLAIN)
