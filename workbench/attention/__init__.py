"""Attention of a run's requests, computed again and read by a person."""
