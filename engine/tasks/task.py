"""What a task is: problems drawn by seed on the train or the test side, each with its own check.

In comes a task's config and a seed, out comes a `Problem` (prompt, one right answer, a check). A
problem's side is a hash of what is asked, so no problem, however drawn or written, is on both.
"""

import hashlib
from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from random import Random
from typing import ClassVar, Literal

from engine.core.config import Policy
from engine.core.errors import BadInput

Split = Literal["train", "test"]
TEST_SHARE = 8  # one problem in this many is for tests
ATTEMPTS = 10_000  # draws before a task is told to have no (more) problems


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether a completion is right and why not; `answer` is what it says in canonical form.

    Equal `answer`s are votes for the same thing; "" where the completion cannot be read.
    """

    right: bool
    reason: str
    answer: str = ""


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing asked. `key` is the same for every way to write the same problem."""

    key: str
    prompt: str
    answer: str  # one right completion, without any end mark

    @abstractmethod
    def check(self, text: str) -> Verdict:
        """Judge a completion of `prompt`; never raises, whatever the text."""

    def fits(self, text: str) -> bool:
        """Whether a completion does all that the prompt itself shows; right, where it shows none
        of what is asked."""
        return self.check(text).right


class Task(Policy):
    """Draws problems of one kind; concrete ones lie one to a file in `engine.tasks`.

    `words`: what its texts hold beside single characters and numbers, for tokenizers.
    """

    folder = "engine.tasks"
    words: ClassVar[tuple[str, ...]] = ()

    @abstractmethod
    def draw(self, chance: Random) -> Problem | None:
        """One problem, of either side; None where this draw led to none."""

    def problem(self, split: Split, seed: int) -> Problem:
        """The problem of this seed on that side, the same on every machine.

        Raises BadInput where the task's sizes leave no problem on that side.
        """
        # Strings seed by their SHA-512, so no seed's draws continue another's.
        chance = Random(f"{self.kind} {split} {seed}")
        for _ in range(ATTEMPTS):
            drawn = self.draw(chance)
            if drawn is not None and side(drawn) == split:
                return drawn
        raise BadInput(f"task {self.kind}: no {split} problem of this size; make it larger")

    def problems(self, split: Split, count: int, first: int = 0) -> Iterator[Problem]:
        """`count` different problems of that side from seed `first` on.

        Raises BadInput where there are not so many.
        """
        seen: set[str] = set()
        for seed in range(first, first + max(20 * count, ATTEMPTS)):
            if len(seen) == count:
                return
            problem = self.problem(split, seed)
            if problem.key not in seen:
                seen.add(problem.key)
                yield problem
        if len(seen) < count:
            raise BadInput(f"task {self.kind}: {len(seen)} different {split} problems, not {count}")


def side(problem: Problem) -> Split:
    """The split a problem belongs to, by a hash of its key alone."""
    place = hashlib.sha256(problem.key.encode()).digest()[0]
    return "test" if place * TEST_SHARE < 256 else "train"
