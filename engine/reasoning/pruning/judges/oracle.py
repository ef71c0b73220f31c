"""A judge that knows: the traces have been run to their ends beforehand."""

from collections.abc import Sequence
from random import Random
from typing import Literal

from engine.core.config import knob
from engine.reasoning.pruning.judge import Answers, Cost, Judge, Judging, Trace


class Oracle(Judge):
    """Compares the answers that the traces will give. For checks: knowing them costs everything."""

    kind: Literal["oracle"] = "oracle"
    lies: float = knob(0.0, "Share of comparisons answered wrongly", low=0.0, high=1.0)

    def open(self, answers: Answers) -> Judging:
        return _Knowing(answers, self.lies)


class _Knowing:
    def __init__(self, answers: Answers, lies: float) -> None:
        self.cost, self.lies, self.answers = Cost(), lies, answers()

    def agree(self, question: str, others: Sequence[Trace], trace: Trace) -> list[float]:
        self.cost.comparisons += len(others)
        mine = self.answers[trace.name]
        return [
            float((self.answers[other.name] == mine) != self._lies(other.name, trace.name))
            for other in others
        ]

    def forget(self) -> None:
        pass

    def _lies(self, one: str, other: str) -> bool:
        """The same for the same pair, whenever it is asked."""
        return Random(f"lie {one} {other}").random() < self.lies
