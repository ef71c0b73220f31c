"""Layouts: which blocks of the cache a thread sees, and in which order."""
