"""Tensors of checkpoints: what one is, and those of layers that keep a state."""
