"""Losses of the log-probabilities of a sequence's tokens."""
