"""No sharing but the prompt: each thread is an ordinary request."""

from collections.abc import Sequence
from typing import Literal

from engine.cache.layouts import Block
from engine.reasoning.threads.layout import Layout


class Independent(Layout):
    """The prompt and one's own words; nobody hears anybody."""

    kind: Literal["independent"] = "independent"

    def order(self, thread: str, closed: Sequence[Block], opened: Sequence[Block]) -> list[Block]:
        """The prompt, then what the thread itself has closed."""
        return [*closed[:1], *(block for block in closed[1:] if block.owner == thread)]
