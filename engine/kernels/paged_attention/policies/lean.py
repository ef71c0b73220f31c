"""Stream-K over key tiles (LeanAttention, arXiv 2405.10480): equal work for every worker."""

from typing import Literal

from engine.kernels.paged_attention.plan import Batch, Ints, even
from engine.kernels.paged_attention.split import Split


class Lean(Split):
    """One run of tiles a worker, across heads and sequences; runs differ by one tile at most."""

    kind: Literal["lean"] = "lean"

    @property
    def owned(self) -> bool:
        return True

    def cuts(self, batch: Batch, workers: int) -> Ints:
        return even(int(batch.tiles_S.sum()), workers)
