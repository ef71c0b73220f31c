"""Tensor-parallel plans derived from a model's structure by two rules."""
