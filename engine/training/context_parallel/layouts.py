"""Layouts: which positions of a sequence each context-parallel rank owns."""

from abc import abstractmethod
from typing import Literal

from engine.core.config import Policy, knob
from engine.core.errors import BadInput


class Layout(Policy):
    """A way to deal a sequence to ranks."""

    folder = "engine.training.context_parallel.layouts"

    @abstractmethod
    def spans(self, rank: int, ranks: int, tokens: int) -> list[range]:
        """The positions of a rank, ascending, all ranks equally many.

        Raises BadInput where `tokens` cannot be dealt evenly.
        """


class Contiguous(Layout):
    """Rank i owns the i-th of n runs: under a causal mask the last rank has the most to do."""

    kind: Literal["contiguous"] = knob("contiguous", doc="one run of positions a rank")

    def spans(self, rank: int, ranks: int, tokens: int) -> list[range]:
        size = shared_out(tokens, ranks, self.kind)
        return [range(rank * size, (rank + 1) * size)]


class Striped(Layout):
    """Rank i owns positions i, i + n, i + 2n, … (Striped Attention, arXiv 2311.09431)."""

    kind: Literal["striped"] = knob("striped", doc="every n-th position")

    def spans(self, rank: int, ranks: int, tokens: int) -> list[range]:
        shared_out(tokens, ranks, self.kind)
        return [range(rank, tokens, ranks)]


class Zigzag(Layout):
    """Of 2n runs rank i owns the i-th and the i-th from the end, so that causal work is even."""

    kind: Literal["zigzag"] = knob("zigzag", doc="a run from either end for each rank")

    def spans(self, rank: int, ranks: int, tokens: int) -> list[range]:
        size = shared_out(tokens, 2 * ranks, self.kind)
        last = 2 * ranks - 1 - rank
        return [range(at * size, (at + 1) * size) for at in (rank, last)]


def shared_out(tokens: int, parts: int, kind: str) -> int:
    """Tokens of each of `parts`. Raises BadInput where they do not come out even."""
    if tokens % parts:
        raise BadInput(
            f"tokens {tokens}: do not divide into {parts} parts ({kind}); "
            f"take {max(1, tokens // parts) * parts} or {(tokens // parts + 1) * parts}"
        )
    return tokens // parts
