"""Reasoning threads: several minds over one cache."""
