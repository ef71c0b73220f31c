"""Table of requests: what became of each, and when; the figures of a fleet come from it alone.

One row a request, in order of arrival. Times are seconds since the run opened, NaN where it never
got there.
"""

from typing import NamedTuple

import numpy as np

COLUMNS = (
    "arrival", "started", "first", "ended", "prompt", "answer", "computed", "prefill", "decode",
    "retries", "state",
)  # fmt: skip
UNDER_WAY, FINISHED, REFUSED = 0.0, 1.0, 2.0
NAN = float("nan")


class Life(list[float]):
    """A row: a list of COLUMNS, written by place."""

    __slots__ = ()


ARRIVAL, STARTED, FIRST, ENDED, PROMPT, ANSWER, COMPUTED, PREFILL, DECODE, RETRIES, STATE = range(
    len(COLUMNS)
)


def begun(arrival: float, prompt: int, answer: int) -> Life:
    """The row of a request that has just arrived."""
    return Life((arrival, NAN, NAN, NAN, prompt, answer, 0.0, -1.0, -1.0, 0.0, UNDER_WAY))


class Counts(NamedTuple):
    """How many requests stand where."""

    arrived: int
    finished: int
    refused: int
    under_way: int


def table(lives: list[Life]) -> np.ndarray:
    """[COLUMNS, N] float64."""
    return np.array(lives, np.float64).reshape(-1, len(COLUMNS)).T
