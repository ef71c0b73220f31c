"""Preemption policies: swap out or recompute when pages run short."""
