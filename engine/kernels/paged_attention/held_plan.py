"""A decode plan at fixed places of a GPU's memory, filled anew for each batch: kernels that are
recorded once (a CUDA graph) find every step's plan where they found the first.

Shape letters as in `plan`; N sequences there is room for, W pages of the widest block table.
"""

import numpy as np
import torch
from torch import Tensor

from engine.kernels.paged_attention.plan import Batch, Plan
from engine.kernels.paged_attention.policies.lean import Lean
from engine.kernels.paged_attention.split_kv import RUNS, TILE, Prepared, workers_of


def parts_for(heads: tuple[int, int, int], device: torch.device) -> tuple[Tensor, Tensor]:
    """Room for what the workers' runs come to, values and sums, before it is merged: as much
    whatever the batch, so that plans whose passes follow one another may share it."""
    parts = 2 * workers_of(device) * RUNS  # a cut ends one and begins another
    return (
        torch.zeros(parts, heads[0], heads[2], device=device),
        torch.zeros(parts, heads[0], device=device),
    )


class HeldPlan:
    """Equal runs for every worker (`Lean`) of at most N sequences of one new token each, which are
    rows 0, 1, … of the queries.

    Programs, items and merges are as many as the fullest batch needs: a program may have no items,
    a merge no parts. `heads`: of queries, of keys, and how wide their values are; `parts`: of
    `parts_for` them.
    """

    def __init__(
        self, table_NW: Tensor, heads: tuple[int, int, int], window: int,
        parts: tuple[Tensor, Tensor],
    ) -> None:  # fmt: skip
        device = table_NW.device
        self.heads, self.window, self.split = heads, window, Lean(runs=RUNS)
        self.workers = workers_of(device)
        sequences = len(table_NW)
        pieces, merges = self.workers * self.split.runs, sequences * heads[1]
        items = pieces + merges  # a cut adds an item
        sizes = [pieces + 1, *[items] * 5, *[merges] * 4]
        self.host = np.zeros(sum(sizes), np.int32)
        self.into = np.split(self.host, np.cumsum(sizes)[:-1])
        self.there = torch.zeros(len(self.host), dtype=torch.int32, device=device)
        held = list(self.there.split(sizes))
        self.ready = Prepared(
            table_NW,
            torch.arange(sequences, dtype=torch.int32, device=device),
            held[:6],
            held[6:],
            *parts,
        )

    def fill(self, context_B: np.ndarray) -> None:
        """Plan for sequences that see so many keys, at most N of them."""
        batch = Batch(context_B.astype(np.int64), self.heads[1], TILE, 1, self.window)
        self._lay(self.split.plan(batch, self.workers))
        self.there.copy_(torch.from_numpy(self.host))

    def _lay(self, made: Plan) -> None:
        merges = (made.row_M, made.head_M, made.parts_M2[:, 0], made.parts_M2[:, 1])
        items = (made.row_I, made.head_I, made.begin_I, made.end_I, made.part_I)
        for place, found in zip(self.into, (made.first_K1, *items, *merges), strict=True):
            place[: len(found)] = found
        for place in self.into[-2:]:  # a merge of no parts ends where it begins
            place[len(made.row_M) :] = 0
