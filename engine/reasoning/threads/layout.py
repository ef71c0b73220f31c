"""What a layout decides: the blocks a thread sees before the one it writes to, in order."""

from abc import abstractmethod
from collections.abc import Sequence
from typing import ClassVar

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
