"""The gated unit of Llama-like feed-forwards."""

from engine.kernels.swiglu.rows_cpu import swiglu

__all__ = ["swiglu"]
