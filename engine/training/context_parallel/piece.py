"""Piece of a split sequence that one context-parallel rank has: positions, neighbours, flops."""

from collections.abc import Sequence
from dataclasses import dataclass

from engine.training.context_parallel.tiles import pairs

FORWARD, BACKWARD = 4, 10  # flops a query-key pair and number of a head: two products, and five


@dataclass(frozen=True)
class Piece:
    """`spans[r]`: positions of rank r. `heads`: query heads times sequences; `dropped`: a turn
    whose block is left out, which is wrong, to show that it is (-1: none)."""

    rank: int
    spans: Sequence[Sequence[range]]
    causal: bool
    dim: int
    heads: int
    dropped: int = -1

    @property
    def ranks(self) -> int:
        return len(self.spans)

    @property
    def scale(self) -> float:
        return float(self.dim**-0.5)

    @property
    def after(self) -> int:
        return (self.rank + 1) % self.ranks

    @property
    def before(self) -> int:
        return (self.rank - 1) % self.ranks

    def pairs(self, queries: int, keys: int) -> int:
        """Visible pairs of one rank's queries and another's keys; 0 where the turn is dropped."""
        turn = (queries - keys) % self.ranks
        # Whichever of the two travels, the block is the one at this distance round the ring.
        if turn == self.dropped:
            return 0
        return pairs(self.spans[queries], self.spans[keys], self.causal)

    def flops(self, queries: int, keys: int, each: int) -> float:
        """Of the products of a block; `each`: FORWARD or BACKWARD."""
        return float(each * self.pairs(queries, keys) * self.dim * self.heads)

    def tokens(self, rank: int) -> int:
        return sum(map(len, self.spans[rank]))
