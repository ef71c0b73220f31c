"""The interleaved layout (arXiv 2504.06261): finished steps only, as in a chat."""

from collections.abc import Sequence
from typing import ClassVar, Literal

from engine.cache.layouts import Block
from engine.reasoning.threads.layout import Layout


class Interleaved(Layout):
    """A shared history of everybody's finished steps; a step is private until it is finished."""

    kind: Literal["interleaved"] = "interleaved"
    steps: ClassVar[bool] = True

    def order(self, thread: str, closed: Sequence[Block], opened: Sequence[Block]) -> list[Block]:
        """The history as it was finished."""
        return list(closed)
