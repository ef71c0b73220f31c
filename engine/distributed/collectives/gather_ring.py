"""All-gather round a ring: each member's share travels on until all have it."""

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
from engine.hardware.collectives import all_gather
from engine.hardware.link import Link


class GatherRing(Collective):
    """n - 1 rounds of an n-th; member i begins with piece i. On nodes as fast as its slowest
    link, exact."""

    kind: Literal["gather_ring"] = knob("gather_ring", doc="all-gather round a ring")
    operation: ClassVar[str] = "all_gather"

    def transfers(self, ranks: int, node: int) -> Transfers:
        blocks = units(ranks)
        shifted = [blocks[-1], *blocks[:-1]]  # `turn` begins where member i has block i + 1
        return Transfers(ranks, tuple(turn(range(ranks), shifted, False)))

    def patterns(self, ranks: int, node: int) -> list[Pattern]:
        return [Pattern(around(range(ranks)), 1 / ranks, ranks - 1)]

    def seconds(self, near: Link, far: Link, ranks: int, node: int, size: float) -> float:
        return all_gather(slower(near, far, ranks, node), ranks, size)
