"""A judge that looks at the surface: how long two traces are letter by letter the same."""

from collections.abc import Sequence
from os.path import commonprefix
from typing import Literal

from engine.reasoning.pruning.judge import Answers, Cost, Judge, Judging, Trace


class SharedPrefix(Judge):
    """The share of the shorter trace that both begin with. Costs next to nothing."""

    kind: Literal["shared_prefix"] = "shared_prefix"

    def open(self, answers: Answers) -> Judging:
        return _Prefix()


class _Prefix:
    def __init__(self) -> None:
        self.cost = Cost()

    def agree(self, question: str, others: Sequence[Trace], trace: Trace) -> list[float]:
        self.cost.comparisons += len(others)
        return [shared(other.text, trace.text) for other in others]

    def forget(self) -> None:
        pass


def shared(one: str, other: str) -> float:
    """The share of the shorter text that both begin with; 0 where one is empty."""
    shortest = min(len(one), len(other))
    return len(commonprefix([one, other])) / shortest if shortest else 0.0
