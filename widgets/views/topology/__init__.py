"""The topology view."""

from widgets.view import View
from widgets.views.topology.draw import draw
from widgets.views.topology.explain import EXPLAIN
from widgets.views.topology.fold import QUESTION, Topology

VIEW = View("topology", QUESTION, Topology, draw, explain=EXPLAIN)
