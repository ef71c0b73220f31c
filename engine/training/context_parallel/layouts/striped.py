"""Every n-th position for each rank (Striped Attention, arXiv 2311.09431)."""

from typing import Literal

from engine.core.config import knob
from engine.training.context_parallel.layout import Layout, shared_out


class Striped(Layout):
    """Rank i owns positions i, i + n, i + 2n, …"""

    kind: Literal["striped"] = knob("striped", doc="every n-th position")

    def spans(self, rank: int, ranks: int, tokens: int) -> list[range]:
        shared_out(tokens, ranks, self.kind)
        return [range(rank, tokens, ranks)]
