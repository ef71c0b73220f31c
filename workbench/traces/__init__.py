"""Traces of other tools: read as runs, and told in tables."""
