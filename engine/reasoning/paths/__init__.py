"""Parallel paths: several reasoning paths of one question and a summary over their caches."""
