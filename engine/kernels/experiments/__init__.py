"""Kernel experiments: traffic counts, data movement, unit balance, STREAM, sweeps of shapes."""
