"""Attention over a sequence that is split among ranks, forward and backward."""
