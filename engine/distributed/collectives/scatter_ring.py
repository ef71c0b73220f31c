"""Reduce-scatter round a ring: a sum travels on and takes each member's part along."""

from typing import ClassVar, Literal

from engine.core.config import knob
from engine.distributed.collective import (
    Collective,
    Pattern,
    Transfers,
    around,
    slower,
    turn,
    units,
)
from engine.hardware.collectives import reduce_scatter
from engine.hardware.link import Link


class ScatterRing(Collective):
    """n - 1 rounds of an n-th; member i ends with the sum of piece i + 1. On nodes as fast as its
    slowest link, exact."""

    kind: Literal["scatter_ring"] = knob("scatter_ring", doc="reduce-scatter round a ring")
    operation: ClassVar[str] = "reduce_scatter"

    def transfers(self, ranks: int, node: int) -> Transfers:
        own = tuple(((at + 1) % ranks, (at + 1) % ranks + 1) for at in range(ranks))
        return Transfers(ranks, tuple(turn(range(ranks), units(ranks), True)), own)

    def patterns(self, ranks: int, node: int) -> list[Pattern]:
        return [Pattern(around(range(ranks)), 1 / ranks, ranks - 1)]

    def seconds(self, near: Link, far: Link, ranks: int, node: int, size: float) -> float:
        return reduce_scatter(slower(near, far, ranks, node), ranks, size)
