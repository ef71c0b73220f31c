"""Reasoning threads: several minds of one model over one attention cache."""
