"""Tensor parallelism: layers whose matrices a group of ranks shares."""
