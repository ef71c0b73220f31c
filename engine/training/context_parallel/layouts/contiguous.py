"""One run of positions for each rank: under a causal mask the last rank has the most to do."""

from typing import Literal

from engine.core.config import knob
from engine.training.context_parallel.layout import Layout, shared_out


class Contiguous(Layout):
    """Rank i owns the i-th of n runs."""

    kind: Literal["contiguous"] = knob("contiguous", doc="one run of positions a rank")

    def spans(self, rank: int, ranks: int, tokens: int) -> list[range]:
        size = shared_out(tokens, ranks, self.kind)
        return [range(rank * size, (rank + 1) * size)]
