"""The three choices of an attention run: how it is split, what becomes of scores, who works."""

from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from engine.core.clock import Clock
from engine.core.config import Policy
from engine.core.executor import Executor
from engine.core.run import Live
from engine.kernels.attention.problem import Problem

FOLDER = "engine.kernels.attention.policies"


class Item(NamedTuple):
    """What a worker takes at once: blocks of one head of one sequence, as `tasks` [n, 3] of
    [sequence, head, first row]; `pairs` are the query-key pairs it costs."""

    label: str
    tasks: np.ndarray
    pairs: int


@dataclass(frozen=True)
class Phase:
    """One kernel: its items, what doing one is, and what it costs in all.

    `open` takes memory and compiles, before anyone looks at a clock.

    `pair_flops`: flops of products for each query-key pair; `other_flops`: of the rest; `bytes`:
    compulsory traffic; `tile_bytes`: what the tiling moves past its own tile; both in float32.
    """

    name: str
    items: list[Item]
    open: Callable[[], Callable[[Item, int], None]]  # gives what does an item for a worker
    pair_flops: int
    other_flops: float
    bytes: float
    tile_bytes: float
    training: bool = False

    @property
    def pairs(self) -> int:
        """Query-key pairs of all items."""
        return sum(item.pairs for item in self.items)


class Split(Policy):
    """How the blocks of each head become items."""

    folder: ClassVar[str] = FOLDER

    @abstractmethod
    def groups(self, lengths: Sequence[int], heads: int, longest_last: bool) -> list[np.ndarray]:
        """Tasks [n, 3] of each item, in the order they are to be begun. `longest_last`: later
        blocks of a sequence cost more."""


class Scores(Policy):
    """What becomes of the scores between the two products."""

    folder: ClassVar[str] = FOLDER

    @abstractmethod
    def phases(self, problem: Problem, split: Split, workers: int) -> Iterator[Phase]:
        """The kernels of the problem, one after another; memory is taken as they come up."""


class Workers(Executor):
    """Who does the items: threads of this machine, or modelled processors of a device."""

    folder: ClassVar[str] = "engine.kernels.attention.executors"

    @property
    @abstractmethod
    def place(self) -> tuple[str, str]:
        """Device and dtype, as tags say them."""

    @abstractmethod
    def number(self) -> int:
        """How many there are."""

    @abstractmethod
    def work(self, phase: Phase, clock: Clock, live: Live) -> float:
        """Do every item, each by the first worker that is free; one span an item.

        Returns when the first began.
        """

    def facts(self) -> dict[str, Any]:
        """What the header says of them."""
        return {"lanes": [lane(worker) for worker in range(self.number())]}


def lane(worker: int) -> str:
    """The lane of a worker."""
    return f"worker {worker}"
