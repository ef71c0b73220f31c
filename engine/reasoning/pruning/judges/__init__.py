"""Judges of whether two partial traces will agree, one to a file."""
