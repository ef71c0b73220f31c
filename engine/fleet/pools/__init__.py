"""Pools: which replicas prefill, which decode, and which do both."""
