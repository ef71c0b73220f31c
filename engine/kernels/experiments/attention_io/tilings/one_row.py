"""No tiling: one query row at a time, whatever fast memory could hold."""

from typing import Literal

import numpy as np

from engine.kernels.experiments.attention_io.memory import ARRAYS, Counted, TwoLevelMemory
from engine.kernels.experiments.attention_io.online import attend_online
from engine.kernels.experiments.attention_io.tiling import Tiling


class OneRow(Tiling):
    """Moves 2NC + 2N²C words at any M: every query loads every key and value again."""

    kind: Literal["one_row"] = "one_row"

    def smallest(self, width: int) -> int:
        return 2 * width + 4

    def run(self, memory: TwoLevelMemory) -> Counted:
        rows, width = memory.q_NC.shape
        steps = np.zeros((rows, len(ARRAYS)), np.int64)
        attend_online(memory.levels, rows, width, 1, 0, True, steps)
        return memory.counted(steps, self.smallest(width))
