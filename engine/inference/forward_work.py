"""Flops and bytes of a real step, for its span: the counts of `engine.models.footprint`, cheaply.

Everything but attention costs a constant and so much a token; those numbers are worked out once.
"""

import numpy as np

from engine.models.config import ModelConfig
from engine.models.footprint import step_work, visible_pairs


class ForwardWork:
    """Work of one model's forward passes. Expert weights count as read by a single token."""

    def __init__(self, config: ModelConfig, dtype: str) -> None:
        one = step_work(config, [1], [1], dtype=dtype, logits=1)
        self.head = next(op for op in one if op.name == "head")
        self.attention = next(op for op in one if op.name == "attention")
        rest = [op for op in one if op.name not in ("head", "attention")]
        # Of the embedding only the tokens' own rows are read: weights that cost by the token.
        embedding = next(op for op in one if op.name == "embedding").weight_bytes
        self.weights = sum(op.weight_bytes for op in one) - embedding
        self.flops = sum(op.flops for op in rest)
        self.bytes = sum(op.activation_bytes for op in rest) + self.attention.activation_bytes
        self.bytes += embedding
        self.windows = [(w, config.windows.count(w)) for w in sorted(set(config.windows))]
        self.layers = config.layers

    def of(self, new_B: np.ndarray, context_B: np.ndarray, logits: int) -> tuple[float, float]:
        """Flops and bytes of `new_B` tokens a sequence, the last of which sees `context_B`."""
        tokens, pairs, touched = int(new_B.sum()), 0, 0
        for window, layers in self.windows:
            seen_B = np.minimum(context_B, window + new_B - 1) if window else context_B
            touched += layers * (int(seen_B.sum()) + tokens)
            if tokens == len(new_B):
                pairs += layers * int(seen_B.sum())
            else:
                pairs += layers * int(visible_pairs(new_B, context_B, window).sum())
        flops = tokens * self.flops + logits * self.head.flops
        flops += self.attention.flops * pairs / self.layers
        moved = self.weights + tokens * self.bytes + logits * self.head.activation_bytes
        moved += self.attention.cache_bytes * touched / (2 * self.layers)
        return flops, moved
