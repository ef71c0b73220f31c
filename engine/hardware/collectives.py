"""What a collective costs on `ranks` devices joined by equal links, in seconds.

The alpha-beta forms of Thakur, Rabenseifner and Gropp (IJHPCA 2005). `size` is in bytes of the
whole tensor: what each rank holds before an all-reduce or reduce-scatter, and after an all-gather.
"""

import math

from engine.hardware.link import Link


def all_reduce_bytes(ranks: int, size: float) -> float:
    """What each rank sends at least, where all hold `size` bytes: what a ring does with."""
    return 2 * (ranks - 1) / ranks * size


def send(link: Link, size: float) -> float:
    """One message from one rank to another."""
    return link.seconds(size)


def ring_all_reduce(link: Link, ranks: int, size: float) -> float:
    """Reduce-scatter, then all-gather: 2 (n - 1) messages of size / n."""
    return 2 * _pieces(link, ranks, size)


def tree_all_reduce(link: Link, ranks: int, size: float) -> float:
    """Up a binary tree and down again: 2 ⌈log2 n⌉ messages of the whole size, unpipelined."""
    return 2 * math.ceil(math.log2(ranks)) * link.seconds(size) if ranks > 1 else 0.0


def halving_doubling_all_reduce(link: Link, ranks: int, size: float) -> float:
    """Halves between partners, then back: 2 log2 n messages of a half, a quarter, … (n a power of
    two)."""
    rounds = range(1, round(math.log2(ranks)) + 1)
    return sum(2 * link.seconds(size / 2**number) for number in rounds)


def star_all_reduce(link: Link, ranks: int, size: float) -> float:
    """All tensors into one rank's port, then out of it."""
    return 2 * pairwise(link, ranks, size)


def pairwise(link: Link, ranks: int, size: float) -> float:
    """`size` bytes from one port to each of n - 1 others, or into one from each, at once."""
    return link.seconds((ranks - 1) * size)


def hierarchical_all_reduce(near: Link, far: Link, nodes: int, node: int, size: float) -> float:
    """Reduce-scatter within nodes of `node` ranks, all-reduce of the shares, all-gather within."""
    inside = reduce_scatter(near, node, size) + all_gather(near, node, size)
    return inside + ring_all_reduce(far, nodes, size / node)


def all_reduce(link: Link, ranks: int, size: float) -> float:
    """The faster of ring and tree, which is what libraries choose by size."""
    return min(ring_all_reduce(link, ranks, size), tree_all_reduce(link, ranks, size))


def all_gather(link: Link, ranks: int, size: float) -> float:
    """Each rank's share travels round the ring: n - 1 messages of size / n."""
    return _pieces(link, ranks, size)


def reduce_scatter(link: Link, ranks: int, size: float) -> float:
    """The mirror of an all-gather, and as long."""
    return _pieces(link, ranks, size)


def broadcast(link: Link, ranks: int, size: float) -> float:
    """Down a binary tree: ⌈log2 n⌉ messages of the whole size."""
    return math.ceil(math.log2(ranks)) * link.seconds(size) if ranks > 1 else 0.0


def all_to_all(link: Link, ranks: int, size: float) -> float:
    """Every rank sends each other a share of its `size` bytes, one after another."""
    return _pieces(link, ranks, size)


def bus_bandwidth(ranks: int, size: float, seconds: float) -> float:
    """Bytes per second per link that an all-reduce of that time shows, as nccl-tests counts it."""
    return all_reduce_bytes(ranks, size) / seconds


def _pieces(link: Link, ranks: int, size: float) -> float:
    """n - 1 messages, one after another, of a share each."""
    return (ranks - 1) * link.seconds(size / ranks) if ranks > 1 else 0.0
