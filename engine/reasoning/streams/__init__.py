"""Parallel streams: several token streams of one model that see one another as they go."""
