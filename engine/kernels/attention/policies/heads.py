"""FlashAttention's split: an item is a whole head of a sequence (arXiv 2205.14135)."""

from collections.abc import Sequence
from typing import Literal

import numpy as np

from engine.core.config import knob
from engine.kernels.attention.policy import Split
from engine.kernels.attention.product_cpu import BLOCK
from engine.kernels.attention.split import blocks


class Heads(Split):
    """A head is a worker's, from its first row to its last."""

    kind: Literal["heads"] = knob("heads", doc="A whole head an item")

    def groups(self, lengths: Sequence[int], heads: int, longest_last: bool) -> list[np.ndarray]:
        tasks = blocks(lengths, heads, BLOCK)
        keys = tasks[:, 0] * heads + tasks[:, 1]
        return [tasks[keys == key] for key in range(len(lengths) * heads)]
