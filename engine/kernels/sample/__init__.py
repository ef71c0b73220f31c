"""From logits to tokens, all rows of a batch at once."""

from engine.kernels.sample.reference import Wishes
from engine.kernels.sample.rows_cpu import greedy, prepare, ready, sample

__all__ = ["Wishes", "greedy", "prepare", "ready", "sample"]
