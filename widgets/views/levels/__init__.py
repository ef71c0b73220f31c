"""The levels view."""

from widgets.views.levels.draw import VIEW

__all__ = ["VIEW"]
