"""Two runs for each rank, one from either end, so that causal work comes out even."""

from typing import Literal

from engine.core.config import knob
from engine.training.context_parallel.layout import Layout, shared_out


class Zigzag(Layout):
    """Of 2n runs rank i owns the i-th and the i-th from the end."""

    kind: Literal["zigzag"] = knob("zigzag", doc="a run from either end for each rank")

    def spans(self, rank: int, ranks: int, tokens: int) -> list[range]:
        size = shared_out(tokens, 2 * ranks, self.kind)
        last = 2 * ranks - 1 - rank
        return [range(at * size, (at + 1) * size) for at in (rank, last)]
