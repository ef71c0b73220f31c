"""The combined layout (arXiv 2504.06261): a shared history, and steps under way."""

from collections.abc import Sequence
from typing import ClassVar, Literal

from engine.cache.layouts import Block
from engine.reasoning.threads.layout import Layout


class Combined(Layout):
    """Finished steps in a shared history, then what the others are writing at this moment."""

    kind: Literal["combined"] = "combined"
    steps: ClassVar[bool] = True

    def order(self, thread: str, closed: Sequence[Block], opened: Sequence[Block]) -> list[Block]:
        """The history as it was finished, then the open steps of the others."""
        return [*closed, *opened]
