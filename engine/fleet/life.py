"""Table of requests: what became of each, and when; the figures of a fleet come from it alone.

One row a request, in order of arrival. Times are seconds since the run opened, NaN where it never
got there.
"""

from struct import Struct
from typing import NamedTuple

import numpy as np

COLUMNS = (
    "arrival", "started", "first", "ended", "prompt", "answer", "computed", "prefill", "decode",
    "retries", "state",
)  # fmt: skip
UNDER_WAY, FINISHED, REFUSED = 0.0, 1.0, 2.0
NAN = float("nan")


START_ROWS = 1024
PACKED = Struct(f"{len(COLUMNS)}d")


class Life(list[float]):
    """A row: a list of COLUMNS, written by place; `number`: which one it is."""

    __slots__ = ("number",)
    number: int


ARRIVAL, STARTED, FIRST, ENDED, PROMPT, ANSWER, COMPUTED, PREFILL, DECODE, RETRIES, STATE = range(
    len(COLUMNS)
)


class Counts(NamedTuple):
    """How many requests stand where."""

    arrived: int
    finished: int
    refused: int
    under_way: int


class Lives:
    """Rows of all requests: lists while they are under way, numbers in one array once over."""

    def __init__(self) -> None:
        self._under_way: dict[int, Life] = {}
        self._over = np.empty((START_ROWS, len(COLUMNS)))
        self._packed = self._over.data  # numpy takes longer to say where it lies
        self._count = 0

    def begin(self, arrival: float, prompt: int, answer: int) -> Life:
        """The row of a request that has just arrived."""
        row = Life((arrival, NAN, NAN, NAN, prompt, answer, 0.0, -1.0, -1.0, 0.0, UNDER_WAY))
        row.number = self._count
        self._under_way[row.number] = row
        self._count += 1
        return row

    def end(self, row: Life) -> None:
        """Nothing of `row` changes any more."""
        if self._count > len(self._over):
            more = np.empty((2 * self._count, len(COLUMNS)))
            more[: len(self._over)] = self._over
            self._over, self._packed = more, more.data
        PACKED.pack_into(self._packed, row.number * PACKED.size, *row)
        del self._under_way[row.number]

    def table(self) -> np.ndarray:
        """[COLUMNS, N] float64, in order of arrival."""
        found = np.empty((self._count, len(COLUMNS)))
        kept = self._over[: self._count]
        found[: len(kept)] = kept
        for number, row in self._under_way.items():
            found[number] = row
        return found.T

    def __len__(self) -> int:
        return self._count


def table(lives: Lives) -> np.ndarray:
    """[COLUMNS, N] float64, in order of arrival."""
    return lives.table()
