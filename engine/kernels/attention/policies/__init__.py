"""Splits, what becomes of scores, and who works, found by file."""
