"""Serving time: when each of many requests is answered by a described engine, in closed steps."""
