"""Stream-K over key tiles (LeanAttention, arXiv 2405.10480): equal work for every worker."""

from typing import Literal

import numpy as np

from engine.core.config import knob
from engine.kernels.paged_attention.plan import Batch, Ints, even
from engine.kernels.paged_attention.split import Split


class Lean(Split):
    """Runs of tiles across heads and sequences, which differ by one tile at most."""

    kind: Literal["lean"] = "lean"
    runs: int = knob(
        1, "runs for each worker; more make up for a worker that is held up", low=1, high=64
    )
    whole: bool = knob(
        False, "runs end where a head does, so they are not equal: wrong", group="more"
    )

    @property
    def fused(self) -> bool:
        return True

    def cuts(self, batch: Batch, workers: int) -> Ints:
        cuts = even(int(batch.tiles_S.sum()), workers * self.runs)
        if not self.whole:
            return cuts
        ends = np.concatenate([[0], np.cumsum(batch.tiles_S)])
        return np.unique(ends[np.searchsorted(ends, cuts)])
