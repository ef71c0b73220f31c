"""Sections of the training bench, found by file name."""
