"""One worker a head: a head's keys are never split, as in FlashAttention-2 (arXiv 2307.08691)."""

from typing import Literal

import numpy as np

from engine.kernels.paged_attention.plan import Batch, Ints
from engine.kernels.paged_attention.split import Split


class PerHead(Split):
    """Every head whole; the next free worker takes the next head."""

    kind: Literal["per_head"] = "per_head"

    def cuts(self, batch: Batch, workers: int) -> Ints:
        return np.concatenate([[0], np.cumsum(batch.tiles_S)]).astype(np.int64)
