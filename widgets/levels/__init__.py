"""The levels view."""

from widgets.levels.draw import VIEW

__all__ = ["VIEW"]
