"""The modules view."""

from widgets.view import View
from widgets.views.modules.draw import draw
from widgets.views.modules.explain import EXPLAIN
from widgets.views.modules.fold import QUESTION, ModuleGrid

VIEW = View("modules", QUESTION, ModuleGrid, draw, explain=EXPLAIN)
