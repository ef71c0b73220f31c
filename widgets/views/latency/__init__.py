"""The latency view."""

from widgets.views.latency.draw import VIEW

__all__ = ["VIEW"]
