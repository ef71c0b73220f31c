"""Devices joined by links: who reaches whom how fast, as a plain graph."""

from dataclasses import dataclass

from engine.core.errors import BadInput
from engine.hardware.link import Link


@dataclass(frozen=True, slots=True)
class Topology:
    """`ranks` devices; `edges[(a, b)]` is the link that carries bytes from rank a to rank b."""

    ranks: int
    edges: dict[tuple[int, int], Link]

    def between(self, source: int, target: int) -> Link:
        """The direct link. Raises BadInput where two ranks have none."""
        if (source, target) not in self.edges:
            raise BadInput(f"topology: no link from rank {source} to rank {target}; join them")
        return self.edges[source, target]

    def slowest(self, order: list[int]) -> Link:
        """Of the links around the ring `order`, the one that holds the others up."""
        around = [
            self.between(a, b) for a, b in zip(order, order[1:] + order[:1], strict=True) if a != b
        ]
        if not around:
            raise BadInput("topology: a ring needs two ranks or more")
        bandwidth = min(link.bandwidth for link in around)
        latency = max(link.latency for link in around)
        return Link(name="slowest of the ring", bandwidth=bandwidth, latency=latency)


def full(ranks: int, link: Link) -> Topology:
    """Every rank reaches every other directly, as through a switch."""
    pairs = {(a, b): link for a in range(ranks) for b in range(ranks) if a != b}
    return Topology(ranks, pairs)


def ring(ranks: int, link: Link) -> Topology:
    """Each rank reaches its two neighbours."""
    edges: dict[tuple[int, int], Link] = {}
    for rank in range(ranks):
        after = (rank + 1) % ranks
        if after != rank:
            edges[rank, after] = edges[after, rank] = link
    return Topology(ranks, edges)


def nodes(count: int, size: int, inside: Link, outside: Link) -> Topology:
    """`count` nodes of `size` ranks: `inside` joins ranks of a node, `outside` all others."""
    total = count * size
    edges = {
        (a, b): inside if a // size == b // size else outside
        for a in range(total)
        for b in range(total)
        if a != b
    }
    return Topology(total, edges)
