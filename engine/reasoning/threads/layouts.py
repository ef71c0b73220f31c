"""Layouts: which blocks of the cache a thread sees before the one it writes to, in which order.

Those with names of their own are Hogwild's (arXiv 2504.06261).
"""

from abc import abstractmethod
from collections.abc import Sequence
from typing import ClassVar, Literal

from engine.cache.layouts import Block
from engine.core.config import Policy


class Layout(Policy):
    """A way to arrange everybody's blocks in one thread's view. Frozen and stateless.

    `steps`: a thread closes its block whenever it ends a step of thought and goes on in a new one;
    otherwise it writes one block from start to end.
    """

    folder = "engine.reasoning.threads.layouts"
    steps: ClassVar[bool] = False

    @abstractmethod
    def order(self, thread: str, closed: Sequence[Block], opened: Sequence[Block]) -> list[Block]:
        """What `thread` sees before its own open block.

        `closed`: blocks nobody writes to any more, the prompt first, then as they were closed.
        `opened`: the blocks that other threads write to now, in the order of those threads.
        """


class Combined(Layout):
    """Finished steps in a shared history, then what the others are writing at this moment."""

    kind: Literal["combined"] = "combined"
    steps: ClassVar[bool] = True

    def order(self, thread: str, closed: Sequence[Block], opened: Sequence[Block]) -> list[Block]:
        """The history as it was finished, then the open steps of the others."""
        return [*closed, *opened]


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


class Independent(Layout):
    """The prompt and one's own words; nobody hears anybody."""

    kind: Literal["independent"] = "independent"

    def order(self, thread: str, closed: Sequence[Block], opened: Sequence[Block]) -> list[Block]:
        """The prompt, then what the thread itself has closed."""
        return [*closed[:1], *(block for block in closed[1:] if block.owner == thread)]


class Interleaved(Layout):
    """A shared history of everybody's finished steps; a step is private until it is finished."""

    kind: Literal["interleaved"] = "interleaved"
    steps: ClassVar[bool] = True

    def order(self, thread: str, closed: Sequence[Block], opened: Sequence[Block]) -> list[Block]:
        """The history as it was finished."""
        return list(closed)
