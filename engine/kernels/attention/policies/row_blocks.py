"""FlashAttention-2's split: an item is a few blocks of rows of a head (arXiv 2307.08691)."""

from collections.abc import Sequence
from typing import Literal

import numpy as np

from engine.core.config import knob
from engine.kernels.attention.policy import Split
from engine.kernels.attention.product_cpu import BLOCK
from engine.kernels.attention.split import blocks


class RowBlocks(Split):
    """Blocks of one head are independent of each other, so they are shared out too."""

    kind: Literal["row_blocks"] = knob("row_blocks", doc="Blocks of rows of a head an item")
    blocks: int = knob(1, f"Blocks of {BLOCK} rows in an item", low=1, high=32)

    def groups(self, lengths: Sequence[int], heads: int, longest_last: bool) -> list[np.ndarray]:
        size = BLOCK * self.blocks
        found = []
        for b, h, first in blocks(lengths, heads, size, last_first=longest_last).tolist():
            rows = range(first, min(first + size, lengths[b]), BLOCK)
            found.append(np.array([(b, h, row) for row in rows], np.int64))
        return found
