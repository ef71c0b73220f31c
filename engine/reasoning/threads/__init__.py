"""Reasoning threads over one attention cache: fork, join and reads of each other's blocks."""
