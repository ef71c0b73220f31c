"""Up a binomial tree and down again, the whole tensor each time: few rounds, much to carry."""

from typing import Literal

from engine.core.config import knob
from engine.distributed.collective import Collective, Pattern, Transfer, Transfers
from engine.hardware.collectives import tree_all_reduce
from engine.hardware.link import Link


class Tree(Collective):
    """2 ⌈log2 n⌉ rounds, not pipelined (Thakur, Rabenseifner and Gropp, IJHPCA 2005). On nodes of
    a power of two ranks exact."""

    kind: Literal["tree"] = knob("tree", doc="up a binomial tree and down")

    def transfers(self, ranks: int, node: int) -> Transfers:
        up = [
            tuple(Transfer(child, parent, 0, 1, True) for child, parent in pairs)
            for pairs in _pairs(ranks)
        ]
        down = [
            tuple(Transfer(parent, child, 0, 1, False) for child, parent in pairs)
            for pairs in reversed(_pairs(ranks))
        ]
        return Transfers(1, (*up, *down))

    def patterns(self, ranks: int, node: int) -> list[Pattern]:
        up = [Pattern(pairs, 1.0, 1) for pairs in _pairs(ranks)]
        down = [
            Pattern(tuple((parent, child) for child, parent in pairs), 1.0, 1)
            for pairs in reversed(_pairs(ranks))
        ]
        return [*up, *down]

    def seconds(self, near: Link, far: Link, ranks: int, node: int, size: float) -> float:
        within = min(ranks, node)
        between = -(-ranks // node)
        return tree_all_reduce(near, within, size) + tree_all_reduce(far, between, size)


def _pairs(ranks: int) -> list[tuple[tuple[int, int], ...]]:
    """(child, parent) of each round upwards: in round k those 2^k apart."""
    found, apart = [], 1
    while apart < ranks:
        found.append(tuple((at, at - apart) for at in range(apart, ranks, 2 * apart)))
        apart *= 2
    return found
