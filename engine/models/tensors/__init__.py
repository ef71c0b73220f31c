"""Tensors of checkpoints and caches: what one is, those of recurrent layers, what is cached."""
