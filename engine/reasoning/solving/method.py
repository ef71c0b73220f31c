"""Method: the contract of a way to solve problems with a model, and what it gives back.

`begin` problems while there is `room`, then `step` until each `Attempt` has come back; `result`
judges it. How a run asks a method for that, tells of it and keeps scores is in `solve`.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol, TypeVar

from engine.tasks.task import Problem

Attempt = TypeVar("Attempt")


class Asked(NamedTuple):
    """A problem by its number in the run. `seed`: what all of its draws depend on."""

    number: int
    problem: Problem
    seed: int

    @property
    def name(self) -> str:
        """Its lane, and its first thread's or request's name."""
        return f"p{self.number}"


class Result(NamedTuple):
    """What became of a problem. `answer` "" where none can be read; `reason` of the verdict.

    `counts`: what is added up over problems as `right` is. `figures`: of this problem, a number or,
    of each of its threads, several. `lane`: where it is told, the problem's own if empty.
    """

    answer: str
    right: bool
    reason: str = ""
    counts: Mapping[str, bool] = {}
    figures: Mapping[str, float | Sequence[float]] = {}
    lane: str = ""


class Method(Protocol[Attempt]):
    """A way to solve problems, many under way at once."""

    def room(self) -> bool:
        """Whether another problem may begin: always where none is under way."""
        ...

    def begin(self, asked: Asked) -> object:
        """Take a problem on. Raises BadInput."""
        ...

    def obey(self, command: dict[str, Any]) -> None:
        """Do what a person said. Raises BadInput where it cannot be done."""
        ...

    def step(self) -> list[Attempt]:
        """A step for all that is under way; the attempts that are over now."""
        ...

    def asked(self, attempt: Attempt) -> Asked:
        """The problem that an attempt is at."""
        ...

    def result(self, attempt: Attempt) -> Result:
        """What became of an attempt that is over."""
        ...
