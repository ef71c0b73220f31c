"""Reasoning threads: several threads over one cache."""
