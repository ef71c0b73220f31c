"""Recursive halving, then doubling: as few rounds as a tree, as few bytes as a ring."""

from typing import Literal

from engine.core.config import knob
from engine.core.errors import BadInput
from engine.distributed.collective import Collective, Pattern, Round, Transfer, Transfers
from engine.hardware.collectives import halving_doubling_all_reduce
from engine.hardware.link import Link


class HalvingDoubling(Collective):
    """Partners exchange halves of what they still reduce, then gather it back (Rabenseifner).

    For a power of two ranks. Nodes: partners across nodes are many at once; the closed form takes
    an adapter for each device, as well as whole blocks of ranks in nodes of a power of two.
    """

    kind: Literal["halving_doubling"] = knob("halving_doubling", doc="halves between partners")

    def refuse(self, ranks: int, node: int) -> None:
        super().refuse(ranks, node)
        if ranks & (ranks - 1):
            raise BadInput(f"collective halving_doubling: {ranks} ranks are no power of two")

    def transfers(self, ranks: int, node: int) -> Transfers:
        self.refuse(ranks, node)
        low, high = [0] * ranks, [ranks] * ranks
        halving: list[Round] = []
        apart = ranks // 2
        while apart:
            rounds = []
            for at in range(ranks):
                other, middle = at ^ apart, (low[at] + high[at]) // 2
                away = (middle, high[at]) if at < other else (low[at], middle)
                rounds.append(Transfer(at, other, *away, True))
            for at in range(ranks):
                middle = (low[at] + high[at]) // 2
                low[at], high[at] = (low[at], middle) if at < at ^ apart else (middle, high[at])
            halving.append(tuple(rounds))
            apart //= 2
        doubling = [
            tuple(
                Transfer(each.target, each.source, each.first, each.last, False) for each in round
            )
            for round in reversed(halving)
        ]
        return Transfers(ranks, (*halving, *doubling))

    def patterns(self, ranks: int, node: int) -> list[Pattern]:
        self.refuse(ranks, node)
        found, apart, share = [], ranks // 2, 0.5
        while apart:
            found.append(Pattern(tuple((at, at ^ apart) for at in range(ranks)), share, 2))
            apart, share = apart // 2, share / 2
        return found

    def seconds(self, near: Link, far: Link, ranks: int, node: int, size: float) -> float:
        if ranks <= node:
            return halving_doubling_all_reduce(near, ranks, size)
        between = -(-ranks // node)
        inside = halving_doubling_all_reduce(near, min(ranks, node), size / between)
        return halving_doubling_all_reduce(far, between, size) + inside
