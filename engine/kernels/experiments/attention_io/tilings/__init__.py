"""Tilings of attention, one a file."""
