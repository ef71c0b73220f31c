"""From logits to tokens, all rows of a batch at once."""

from engine.kernels.sample.rows_cpu import greedy, sample

__all__ = ["greedy", "sample"]
