"""What a judge is: from what two traces of one question have written so far, will they agree?

A judge's config is a policy; opened for a run it compares traces and counts what that costs.
"""

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from engine.core.config import Policy


class Trace(NamedTuple):
    """What one thread has written so far."""

    name: str
    text: str


Answers = Callable[[], Mapping[str, str]]  # final answers by thread, found by letting all finish


@dataclass(slots=True)
class Cost:
    """What judging has taken: comparisons, tokens through the judge's model, flops, bytes."""

    comparisons: int = 0
    tokens: int = 0
    flops: float = 0.0
    bytes: float = 0.0

    def since(self, before: "Cost") -> "Cost":
        """What has come on top of `before`."""
        return Cost(
            self.comparisons - before.comparisons, self.tokens - before.tokens,
            self.flops - before.flops, self.bytes - before.bytes,
        )  # fmt: skip


class Judging(Protocol):
    """A judge at work."""

    cost: Cost

    def agree(self, question: str, others: Sequence[Trace], trace: Trace) -> list[float]:
        """How likely `trace` ends in the same answer as each of `others`, from 0 to 1."""

    def forget(self) -> None:
        """The question is over: what was kept for it may go."""


class Judge(Policy):
    """Says whether traces will agree; concrete ones lie one to a file in `judges`."""

    folder = "engine.reasoning.pruning.judges"

    @abstractmethod
    def open(self, answers: Answers) -> Judging:
        """The judge at work. Only an oracle may ask for `answers`. Raises BadInput."""
