"""Streaming thinking: a model that reasons while its input still arrives."""
