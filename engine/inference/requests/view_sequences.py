"""Sequences over views of the cache: threads that step along with an engine's requests.

A thread's view is a list of blocks, each with the position at which the thread sees it. Whoever
keeps threads says before each step what they write and where (`plan`), and hears of their tokens
after it (`take`); pages come from the engine's own pool.

Shape letters: B threads, R rows of logits, V vocabulary.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from engine.models.batch import Batch

NO_PAIRS = np.zeros((0, 2), np.int32)
NONE = np.zeros(0, np.int64)
Answer = Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]


@dataclass(slots=True)
class ViewBatch:
    """The part of one step that threads have. `answer` draws tokens_B, logprobs_B from logits_RV.

    A modelled token depends on `seed_B` and `known_B`, the tokens generated so far, alone.
    """

    batch: Batch
    contexts_B: np.ndarray  # tokens that each thread's last new token sees, itself included
    seed_B: np.ndarray
    known_B: np.ndarray
    answer: Answer
    copies: np.ndarray = field(default_factory=lambda: NO_PAIRS)  # (source page, target page)

    @property
    def queries_B(self) -> np.ndarray:
        """New tokens of each thread."""
        return np.diff(self.batch.query_start_B1)

    @property
    def tokens(self) -> int:
        """New tokens of all threads."""
        return len(self.batch.tokens_T)


@dataclass(slots=True)
class ViewResult:
    """What a step gave to its threads, in their order.

    `mass_BN`, where attention was sampled: how much of a thread's attention each block of its view
    gets, in the order of the view, its own block last; NaN beyond.
    """

    tokens_B: np.ndarray
    logprobs_B: np.ndarray
    mass_BN: np.ndarray | None = None


class ThreadHost(Protocol):
    """Whoever keeps threads that step with an engine's requests."""

    @property
    def busy(self) -> bool:
        """Whether `plan` would give something."""
        ...

    def plan(self, now: float) -> ViewBatch | None:
        """What its threads do in the step that begins now; their pages are taken already."""
        ...

    def take(self, threads: ViewResult, now: float) -> None:
        """What came of what was planned last."""
        ...
