"""The latency view."""

from widgets.latency.draw import VIEW

__all__ = ["VIEW"]
