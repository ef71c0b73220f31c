"""Fixed split-KV (FlashDecoding, Dao et al. 2023): each head's keys in so many equal parts."""

from typing import Literal

import numpy as np

from engine.core.config import knob
from engine.kernels.paged_attention.plan import Batch, Ints, even
from engine.kernels.paged_attention.split import Split

ENOUGH = 0.8  # heads for each worker from which FlashAttention-2's launcher splits no more
GOOD = 0.85  # of the best wave efficiency: the smallest number of parts that reaches it is taken
MOST = 128  # parts


class FixedSplit(Split):
    """As many equal parts of a short head as of a long one; the next free worker takes the next."""

    kind: Literal["fixed_split"] = "fixed_split"
    parts: int = knob(
        0, "parts of each head's keys; 0: chosen by how full the last wave is", low=0, high=1024
    )

    def cuts(self, batch: Batch, workers: int) -> Ints:
        tiles_S = batch.tiles_S
        parts = self.parts or chosen(len(tiles_S), int(tiles_S.max(initial=1)), workers)
        pieces = [even(int(tiles), min(parts, max(int(tiles), 1))) for tiles in tiles_S]
        starts = np.cumsum(tiles_S) - tiles_S
        ends = np.array([tiles_S.sum()])
        return np.unique(
            np.concatenate([*(c + s for c, s in zip(pieces, starts, strict=True)), ends])
        )


def chosen(heads: int, tiles: int, workers: int) -> int:
    """How many parts FlashAttention-2's split-KV launcher takes.

    One where heads nearly fill the workers. Otherwise the fewest parts that fill the last wave of
    workers almost as well as the best number does; numbers that shorten no part are left out.
    """
    if heads == 0 or heads >= ENOUGH * workers:
        return 1
    candidates = [
        parts
        for parts in range(1, min(MOST, workers, tiles) + 1)
        if parts == 1 or -(-tiles // parts) != -(-tiles // (parts - 1))
    ]
    filled = [heads * parts / workers for parts in candidates]
    efficiency = [waves / np.ceil(waves) for waves in filled]
    return next(
        parts
        for parts, good in zip(candidates, efficiency, strict=True)
        if good >= GOOD * max(efficiency)
    )
