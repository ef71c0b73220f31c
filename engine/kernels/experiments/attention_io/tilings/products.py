"""Attention as two tiled matrix products, scores in slow memory between them: wins where M < C²."""

import math
from typing import Literal

import numpy as np

from engine.kernels.experiments.attention_io.memory import ARRAYS, Counted, TwoLevelMemory
from engine.kernels.experiments.attention_io.products import (
    outputs,
    scores_by_rows,
    scores_by_squares,
)
from engine.kernels.experiments.attention_io.tiling import Tiling


class Products(Tiling):
    """Moves about (min(x², 2x) + 1 + 2x)·N² words with x = C/√M; FlashAttention moves 4x²·N².

    The two meet at x = 1. Source of the idea: Saha & Ye, arXiv 2402.07443, give for M < C² an
    algorithm that meets the bound of matrix multiplication; tiles and constants are ours.
    """

    kind: Literal["products"] = "products"
    spills = True

    def smallest(self, width: int) -> int:
        return 5  # one score, its row's maximum and sum, one query's and one key's number

    def run(self, memory: TwoLevelMemory) -> Counted:
        rows, width = memory.q_NC.shape
        room = memory.capacity - 1
        by_rows = min(rows, room // (width + 3))
        square = min(rows, math.isqrt(4 * room + 9) // 2 - 1)
        while square * square + 3 * square > room:
            square -= 1
        block = by_rows if by_rows and _passes(rows, by_rows) <= 2 * _passes(rows, square) else 0
        first = np.zeros((_passes(rows, block or square), len(ARRAYS)), np.int64)
        if block:
            scores_by_rows(memory.levels, rows, width, block, first)
            held = block * (width + 3) + 1
        else:
            scores_by_squares(memory.levels, rows, width, square, first)
            held = square * square + 3 * square + 1
        tall, across = self.output_tile(rows, width, room)
        second = np.zeros((_passes(rows, tall), len(ARRAYS)), np.int64)
        outputs(memory.levels, rows, width, tall, across, second)
        steps = np.concatenate([first, second])
        return memory.counted(steps, max(held, tall * (across + 3) + 1))

    def output_tile(self, rows: int, width: int, room: int) -> tuple[int, int]:
        """Rows and columns of the output's tile that move the fewest scores and values."""
        found = []
        for across in range(1, width + 1):
            tall = min(rows, room // (across + 3))
            if tall:
                moved = rows * rows * _passes(width, across) + rows * width * _passes(rows, tall)
                found.append((moved, tall, across))
        return min(found)[1:]


def _passes(whole: int, part: int) -> int:
    return -(-whole // part)
