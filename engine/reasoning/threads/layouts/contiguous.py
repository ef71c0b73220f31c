"""The contiguous layout (arXiv 2504.06261): one block a worker, others' before own."""

from collections.abc import Sequence
from typing import Literal

from engine.cache.layouts import Block
from engine.reasoning.threads.layout import Layout


class Contiguous(Layout):
    """The prompt, every other worker's whole block, token by token as it grows, then one's own."""

    kind: Literal["contiguous"] = "contiguous"

    def order(self, thread: str, closed: Sequence[Block], opened: Sequence[Block]) -> list[Block]:
        """Others keep their places relative to each other when one of them ends."""
        others = [*closed[1:], *opened]
        return [
            *closed[:1],
            *sorted(others, key=lambda block: (block.owner == thread, block.number)),
        ]
