"""Curves that can be drawn beside a run."""
