"""Two levels of memory: slow, of any size, and fast, of M words; what crosses between is counted.

Fast memory is an array of exactly M words. Kernels compute on that array alone, reach slow memory
through `load` and `store` alone, and have every index checked, so none can hold more than M.
A word is one float64 number. Source of the model: Saha & Ye, arXiv 2402.07443, abstract.
"""

from dataclasses import dataclass, field

import numpy as np

from engine.core.errors import BadInput
from engine.kernels.compiled import checked

QUERY, KEY, VALUE, OUTPUT, SCORE, STATISTIC = range(6)
ARRAYS = ("Q", "K", "V", "O", "scores", "row maxima and sums")


@checked
def load(memory, which, start, at, count):
    """Copy `count` words of slow memory from `start` to fast memory at `at`."""
    fast, slow, moved, seen = memory
    for i in range(count):
        fast[at + i] = slow[start + i]
        if seen.size == 0:
            moved[which, 0] += 1
        elif seen[start + i] == 0:
            seen[start + i] = 1
            moved[which, 0] += 1


@checked
def store(memory, which, at, start, count):
    """Copy `count` words of fast memory from `at` to slow memory at `start`."""
    fast, slow, moved, _ = memory
    for i in range(count):
        slow[start + i] = fast[at + i]
    moved[which, 1] += count


@dataclass(frozen=True)
class Counted:
    """What a tiling did. `o_NC`: attention. `moved`: words by array, loaded and stored.

    `steps`: the same, summed over both ways and up to the end of each step of the outer loop.
    `held`: most words in fast memory.
    """

    o_NC: np.ndarray
    moved: np.ndarray
    steps: np.ndarray
    held: int

    @property
    def words(self) -> int:
        """All words moved, both ways."""
        return int(self.moved.sum())


@dataclass
class TwoLevelMemory:
    """Slow memory holding Q, K, V [N, C] and room for O, statistics and scores; M fast words.

    `evicts` False is a counter that forgets that fast memory is small: a word counts as loaded the
    first time only.
    """

    q_NC: np.ndarray
    k_NC: np.ndarray
    v_NC: np.ndarray
    capacity: int
    evicts: bool = True
    scores: bool = False
    fast: np.ndarray = field(init=False)
    slow: np.ndarray = field(init=False)
    moved: np.ndarray = field(init=False)
    seen: np.ndarray = field(init=False)

    def __post_init__(self) -> None:
        rows, width = self.q_NC.shape
        room = rows * width + 2 * rows + (rows * rows if self.scores else 0)
        parts = [x.astype(np.float64).ravel() for x in (self.q_NC, self.k_NC, self.v_NC)]
        self.slow = np.concatenate([*parts, np.full(room, np.nan)])
        self.fast = np.full(self.capacity, np.nan)
        self.moved = np.zeros((len(ARRAYS), 2), np.int64)
        self.seen = np.zeros(0 if self.evicts else len(self.slow), np.uint8)

    @property
    def levels(self) -> tuple[np.ndarray, ...]:
        """What kernels take: fast, slow, counts, and which words were seen."""
        return self.fast, self.slow, self.moved, self.seen

    def counted(self, steps: np.ndarray, held: int) -> Counted:
        """The result, read where the tiling stored it."""
        if held > self.capacity:
            raise BadInput(f"fast memory: {held} words do not fit in {self.capacity}")
        rows, width = self.q_NC.shape
        start = 3 * rows * width
        o_NC = self.slow[start : start + rows * width].reshape(rows, width).copy()
        return Counted(o_NC, self.moved, steps, held)
