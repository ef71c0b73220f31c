"""All send to one rank, which adds and sends the sum to all: a parameter server."""

from typing import Literal

from engine.core.config import knob
from engine.distributed.collective import Collective, Pattern, Transfer, Transfers
from engine.hardware.collectives import star_all_reduce
from engine.hardware.link import Link


class Star(Collective):
    """Two rounds, whatever the number of ranks; everything passes the one rank's port. On nodes
    the form is a lower bound: of what comes from outside, or from within."""

    kind: Literal["star"] = knob("star", doc="through one rank, as a parameter server")

    def transfers(self, ranks: int, node: int) -> Transfers:
        to = tuple(Transfer(rank, 0, 0, 1, True) for rank in range(1, ranks))
        back = tuple(Transfer(0, rank, 0, 1, False) for rank in range(1, ranks))
        return Transfers(1, (to, back) if ranks > 1 else ())

    def patterns(self, ranks: int, node: int) -> list[Pattern]:
        if ranks < 2:
            return []
        to = tuple((rank, 0) for rank in range(1, ranks))
        return [Pattern(to, 1.0, 1), Pattern(tuple((b, a) for a, b in to), 1.0, 1)]

    def seconds(self, near: Link, far: Link, ranks: int, node: int, size: float) -> float:
        within = star_all_reduce(near, min(ranks, node), size)
        outside = ranks - min(ranks, node)
        return max(within, star_all_reduce(far, outside + 1, size))
