"""The view of how far drafts hold."""

from widgets.views.acceptance.draw import VIEW

__all__ = ["VIEW"]
