"""Rotary position embedding of query and key heads."""

from engine.kernels.rotary.halves_cpu import rotate

__all__ = ["rotate"]
