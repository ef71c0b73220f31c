"""Everybody sends everybody its share, adds, and sends the sum to all: two rounds."""

from typing import Literal

from engine.core.config import knob
from engine.distributed.collective import Collective, Pattern, Transfer, Transfers
from engine.distributed.collectives.one_phase import pairs
from engine.hardware.collectives import pairwise
from engine.hardware.link import Link


class TwoPhase(Collective):
    """All pairs in two phases (2PA of MSCCL++): a ring's bytes in two latencies, where every rank
    reaches every other. Exact on equal links."""

    kind: Literal["two_phase"] = knob("two_phase", doc="all pairs at once, shares, twice")

    def transfers(self, ranks: int, node: int) -> Transfers:
        if ranks < 2:
            return Transfers(1, ())
        scatter = tuple(Transfer(a, b, b, b + 1, True) for a, b in pairs(ranks))
        gather = tuple(Transfer(a, b, a, a + 1, False) for a, b in pairs(ranks))
        return Transfers(ranks, (scatter, gather))

    def patterns(self, ranks: int, node: int) -> list[Pattern]:
        return [Pattern(pairs(ranks), 1 / ranks, 2)] if ranks > 1 else []

    def seconds(self, near: Link, far: Link, ranks: int, node: int, size: float) -> float:
        within = min(ranks, node)
        share = size / ranks
        return 2 * max(pairwise(near, within, share), pairwise(far, ranks - within + 1, share))
