"""Verdicts of a study: its claims, judged, with their bars."""
