"""Executors of a pipeline's plan: virtual clock, real ranks, both on one axis, a mesh of ranks."""
