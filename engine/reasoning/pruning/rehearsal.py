"""All traces of some questions run to their ends, unseen: what oracles, sweeps and lessons need.

The draws are those of a run that prunes, so what such a run keeps ends as it ended here.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from engine.core.clock import VirtualClock
from engine.reasoning.pruning.config import PruningConfig
from engine.reasoning.pruning.questions import Pruning
from engine.reasoning.threads.mind import Mind
from engine.reasoning.threads.reasoner import Reasoner
from engine.tasks.task import Problem


class Whole(NamedTuple):
    """A trace that was let finish; `answer` "" where it cannot be read."""

    name: str
    tokens: list[int]
    answer: str
    right: bool


Report = Callable[[float, float], None]  # questions done, of how many


def rehearse(
    config: PruningConfig,
    mind: Mind,
    asked: Sequence[tuple[int, Problem]],
    report: Report = lambda done, total: None,
) -> list[list[Whole]]:
    """The traces of each problem (given with its number), in the order of its threads."""
    found: dict[int, list[Whole]] = {}
    each = max(1, config.threads // config.traces)
    for first in range(0, len(asked), each):
        some = asked[first : first + each]
        reasoner = Reasoner(config.reasoning(), mind, VirtualClock(), lambda event: None)
        pruning = Pruning(config, reasoner, None)
        for number, problem in some:
            pruning.begin(number, problem)
        while pruning.questions:
            for question in pruning.step():
                check, text = question.problem.check, reasoner.pieces.text
                verdicts = [check(text(thread.tokens)) for thread in question.threads]
                found[question.number] = [
                    Whole(thread.name, thread.tokens, verdict.answer, verdict.right)
                    for thread, verdict in zip(question.threads, verdicts, strict=True)
                ]
        report(first + len(some), len(asked))
    return [found[number] for number, _ in asked]
