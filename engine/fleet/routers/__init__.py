"""Routers: which replica of a fleet serves a request."""
