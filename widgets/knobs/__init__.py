"""Knobs: controls made from a Config's fields."""
