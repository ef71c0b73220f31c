"""Who computes which keys of a decode step: work items, their workers, and what is merged after.

All tiles of all heads of a batch form one list, head after head, a head's tiles in order. A split
cuts the list into pieces; a piece's part of one head is an item. A head cut into several items is
merged from their partial results.

Shape letters: B sequences, S streams (the heads of a sequence that are computed together),
I items, K pieces, M merges.
"""

from dataclasses import dataclass

import numpy as np

from engine.core.errors import BadInput

Ints = np.ndarray  # int64


@dataclass(frozen=True)
class Batch:
    """What one decode step has to read: each sequence's keys `low` … `context`, for all heads.

    `members` key/value heads of a sequence are computed together; `tile` keys are never cut.
    """

    context_B: Ints
    kv_heads: int
    tile: int = 256
    members: int = 1
    window: int = 0

    @property
    def low_B(self) -> Ints:
        """Each sequence's first visible key."""
        if not self.window:
            return np.zeros_like(self.context_B)
        return np.maximum(self.context_B - self.window, 0)

    @property
    def groups(self) -> int:
        """Streams of a sequence."""
        return -(-self.kv_heads // self.members)

    @property
    def tiles_S(self) -> Ints:
        """Tiles of each stream, a sequence's streams together."""
        return np.repeat(-(-(self.context_B - self.low_B) // self.tile), self.groups)


@dataclass(frozen=True)
class Plan:
    """Items in the order in which they are handed out, and the merges after them.

    Whoever is free takes the next piece: items `first_K1[k]` … `first_K1[k + 1]`. `part_I`: where
    an item's partial result goes; -1: it is its head's only one and goes straight to the output.
    Merge m folds parts `parts_M2[m]` (first, after last); `fused`: by the worker of the first of
    them, within the same kernel.
    """

    batch: Batch
    workers: int
    fused: bool
    row_I: Ints  # sequence
    head_I: Ints  # first key/value head
    begin_I: Ints  # first key
    end_I: Ints  # after the last key
    tiles_I: Ints
    part_I: Ints
    first_K1: Ints
    row_M: Ints
    head_M: Ints
    parts_M2: Ints

    @property
    def parts(self) -> int:
        """Partial results to keep."""
        return int(self.part_I.max(initial=-1)) + 1


def even(tiles: int, pieces: int) -> Ints:
    """The pieces + 1 places to cut `tiles` tiles at so that pieces differ by one tile at most."""
    return np.arange(pieces + 1, dtype=np.int64) * tiles // pieces


def plan(batch: Batch, cuts: Ints, workers: int, fused: bool) -> Plan:
    """The items that cutting the tile list at `cuts` gives (rising, from 0 to the list's length).

    Raises BadInput where cuts leave tiles out.
    """
    tiles_S = batch.tiles_S
    starts = np.concatenate([[0], np.cumsum(tiles_S)]).astype(np.int64)
    total = int(starts[-1])
    if cuts[0] != 0 or cuts[-1] != total or (np.diff(cuts) < 0).any():
        raise BadInput(f"cuts {cuts.tolist()[:8]}: must rise from 0 to {total} tiles")
    places = np.unique(np.concatenate([cuts, starts]))
    first, last = places[:-1], places[1:]
    stream = np.searchsorted(starts, first, side="right") - 1
    row, within = stream // batch.groups, first - starts[stream]
    low = batch.low_B[row]
    begin = low + within * batch.tile
    end = np.minimum(low + (last - starts[stream]) * batch.tile, batch.context_B[row])
    head = stream % batch.groups * batch.members
    count = np.bincount(stream, minlength=len(tiles_S))
    cut = count[stream] > 1
    part = np.where(cut, np.cumsum(cut) - 1, -1)
    split = np.flatnonzero(count > 1)
    after = np.cumsum(count[split])
    return Plan(
        batch, workers, fused, row, head, begin, end, last - first, part,
        np.searchsorted(first, cuts).astype(np.int64),
        split // batch.groups, split % batch.groups * batch.members,
        np.stack([after - count[split], after], axis=1).astype(np.int64),
    )  # fmt: skip
