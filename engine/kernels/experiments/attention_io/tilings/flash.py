"""FlashAttention's tiling: rows of Q and O stay in fast memory while all of K and V stream past."""

from typing import Literal

import numpy as np

from engine.core.config import knob
from engine.kernels.experiments.attention_io.memory import ARRAYS, Counted, TwoLevelMemory
from engine.kernels.experiments.attention_io.online import attend_online
from engine.kernels.experiments.attention_io.tiling import Tiling


class Flash(Tiling):
    """Moves 2NC + 2NC·⌈N/R⌉ words with R rows at once, R ≈ M/2C: 4N²C²/M for large N.

    What rows leave free keeps keys and values that then need no second load. The online softmax
    follows FlashAttention (arXiv 2205.14135, algorithm 1), with rows of Q outermost.
    """

    kind: Literal["flash"] = "flash"
    rescales: bool = knob(True, "Correct sums and output when a larger score arrives")
    uses: float = knob(1.0, "Part of fast memory that it fills", low=0.01, high=1.0, group="more")

    def smallest(self, width: int) -> int:
        return 2 * width + 4

    def shape(self, rows: int, width: int, capacity: int) -> tuple[int, int]:
        """Query rows at once, and keys that stay: the pair that loads the fewest words."""
        each = 2 * width + 3
        fewest = -(-rows // min(rows, (capacity - 1) // each))
        found = []
        for blocks in range(fewest, min(rows, 2 * fewest + 2) + 1):
            block = -(-rows // blocks)
            pinned = min(rows, (capacity - 1 - block * each) // (2 * width))
            again = -(-rows // block) - 1
            found.append((again * 2 * width * (rows - pinned), block, pinned))
        return min(found)[1:]

    def run(self, memory: TwoLevelMemory) -> Counted:
        rows, width = memory.q_NC.shape
        room = max(self.smallest(width), int(memory.capacity * self.uses))
        block, pinned = self.shape(rows, width, room)
        steps = np.zeros((-(-rows // block), len(ARRAYS)), np.int64)
        attend_online(memory.levels, rows, width, block, pinned, self.rescales, steps)
        return memory.counted(steps, block * (2 * width + 3) + 1 + pinned * 2 * width)
