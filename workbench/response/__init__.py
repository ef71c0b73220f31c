"""Responses: the figures of a study over one knob or two."""
