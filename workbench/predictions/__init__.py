"""Predictions of described runs with intervals, and how far they were from measured ones."""
