"""Reasoning threads: several threads of one model over one attention cache."""
