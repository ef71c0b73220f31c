"""Causal attention of new tokens over keys and values kept in pages."""

from engine.kernels.paged_attention.tasks_cpu import paged_attention

__all__ = ["paged_attention"]
