"""Reduce-scatter within each node, all-reduce of each share between nodes, all-gather within."""

from typing import Literal

from engine.core.config import knob
from engine.core.errors import BadInput
from engine.distributed.collective import (
    Collective,
    Pattern,
    Transfers,
    around,
    beside,
    turn,
)
from engine.hardware.collectives import hierarchical_all_reduce
from engine.hardware.link import Link


class Hierarchical(Collective):
    """Only a node's share of the tensor leaves each device, over its own adapter. Exact where each
    device has one."""

    kind: Literal["hierarchical"] = knob("hierarchical", doc="within nodes, between them, within")

    def refuse(self, ranks: int, node: int) -> None:
        super().refuse(ranks, node)
        if node < 2 or ranks % node or ranks == node:
            raise BadInput(
                f"collective hierarchical: {ranks} ranks in nodes of {node}; take several whole "
                "nodes of 2 at least"
            )

    def transfers(self, ranks: int, node: int) -> Transfers:
        self.refuse(ranks, node)
        count = ranks // node
        shares = [(place * count, (place + 1) * count) for place in range(node)]
        homes = [range(first, first + node) for first in range(0, ranks, node)]
        scatter = beside(turn(home, shares, True) for home in homes)
        gather = beside(turn(home, shares, False) for home in homes)
        across = []
        for place in range(node):
            first = shares[(place + 1) % node][0]  # what a ring's reduce-scatter leaves there
            members = range(place, ranks, node)
            blocks = [(first + each, first + each + 1) for each in range(count)]
            across.append([*turn(members, blocks, True), *turn(members, blocks, False)])
        return Transfers(ranks, (*scatter, *beside(across), *gather))

    def patterns(self, ranks: int, node: int) -> list[Pattern]:
        self.refuse(ranks, node)
        count = ranks // node
        inside = tuple(
            pair for first in range(0, ranks, node) for pair in around(range(first, first + node))
        )
        across = tuple(pair for place in range(node) for pair in around(range(place, ranks, node)))
        return [
            Pattern(inside, 1 / node, 2 * (node - 1)),
            Pattern(across, 1 / ranks, 2 * (count - 1)),
        ]

    def seconds(self, near: Link, far: Link, ranks: int, node: int, size: float) -> float:
        self.refuse(ranks, node)
        return hierarchical_all_reduce(near, far, ranks // node, node, size)
