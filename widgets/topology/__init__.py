"""The topology view."""

from widgets.topology.draw import draw
from widgets.topology.fold import QUESTION, Topology
from widgets.view import View

VIEW = View("topology", QUESTION, Topology, draw)
