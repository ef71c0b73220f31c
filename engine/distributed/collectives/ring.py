"""Reduce-scatter round a ring, then all-gather round it: every link is busy all the while."""

from typing import Literal

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
from engine.hardware.collectives import ring_all_reduce
from engine.hardware.link import Link


class Ring(Collective):
    """2 (n - 1) rounds of an n-th each (Patarasuk and Yuan, JPDC 2009). On nodes as fast as its
    slowest link, exact."""

    kind: Literal["ring"] = knob("ring", doc="round a ring, twice")

    def transfers(self, ranks: int, node: int) -> Transfers:
        members, blocks = range(ranks), units(ranks)
        rounds = [*turn(members, blocks, True), *turn(members, blocks, False)]
        return Transfers(ranks, tuple(rounds))

    def patterns(self, ranks: int, node: int) -> list[Pattern]:
        return [Pattern(around(range(ranks)), 1 / ranks, 2 * (ranks - 1))]

    def seconds(self, near: Link, far: Link, ranks: int, node: int, size: float) -> float:
        return ring_all_reduce(slower(near, far, ranks, node), ranks, size)
