"""RMS norm over the last axis."""

from engine.kernels.norm.rows_cpu import rms_norm

__all__ = ["rms_norm"]
