"""Everybody sends everything to everybody: one round, for the smallest tensors."""

from typing import Literal

from engine.core.config import knob
from engine.distributed.collective import Collective, Pattern, Transfer, Transfers
from engine.hardware.collectives import pairwise
from engine.hardware.link import Link


class OnePhase(Collective):
    """All pairs in one phase (1PA of MSCCL++): one latency, n - 1 whole tensors through each port.
    Sums are made on every rank by itself, so their last bits may differ. Exact on equal links."""

    kind: Literal["one_phase"] = knob("one_phase", doc="all pairs at once, whole tensors")

    def transfers(self, ranks: int, node: int) -> Transfers:
        each = tuple(Transfer(a, b, 0, 1, True) for a, b in pairs(ranks))
        return Transfers(1, (each,) if each else ())

    def patterns(self, ranks: int, node: int) -> list[Pattern]:
        return [Pattern(pairs(ranks), 1.0, 1)] if ranks > 1 else []

    def seconds(self, near: Link, far: Link, ranks: int, node: int, size: float) -> float:
        return _longer(near, far, ranks, node, size)


def _longer(near: Link, far: Link, ranks: int, node: int, size: float) -> float:
    """The longer of what a rank sends within its node and outside."""
    within = min(ranks, node)
    return max(pairwise(near, within, size), pairwise(far, ranks - within + 1, size))


def pairs(ranks: int) -> tuple[tuple[int, int], ...]:
    """Every rank with every other, both ways."""
    return tuple((a, (a + step) % ranks) for step in range(1, ranks) for a in range(ranks))
