"""What a run of pruned traces tells of itself: who wrote what, and the work that was done."""

from collections.abc import Sequence
from typing import NamedTuple

from engine.core.events import Branch, Mark, Span, Token
from engine.core.log import Log
from engine.reasoning.pruning.questions import LANE
from engine.tasks.task import Problem


class Written(NamedTuple):
    """A thread: the texts of its tokens, how it ended, its answer ("" if none or not whole)."""

    name: str
    pieces: list[str]
    state: str
    answer: str
    right: bool


def written(log: Log, problems: Sequence[Problem]) -> list[list[Written]]:
    """The threads of each question in their order."""
    pieces: dict[str, list[str]] = {}
    states: dict[str, str] = {}
    for event in log:
        if isinstance(event, Token):
            pieces.setdefault(event.thread, []).append(event.text)
        elif isinstance(event, Branch):
            states[event.thread] = event.state
    found: list[list[Written]] = [[] for _ in problems]
    for name, state in states.items():
        number = int(name.partition(".")[0][1:])
        said = pieces.get(name, [])
        verdict = problems[number].check("".join(said))
        whole = state == "finished"
        answer = verdict.answer if whole else ""
        found[number].append(Written(name, said, state, answer, whole and verdict.right))
    return found


def votes(log: Log) -> dict[str, tuple[str, bool]]:
    """By the name of a question's first thread: what the vote is for, and whether that is right."""
    answers = {mark.lane: mark.text for mark in log.of(Mark) if mark.name == "answer"}
    rights = {mark.lane: mark.text for mark in log.of(Mark) if mark.name == "verdict"}
    return {name: (answer, rights[name] == "right") for name, answer in answers.items()}


def flops(log: Log) -> tuple[float, float]:
    """Counted flops of the threads and of the judge."""
    spans = list(log.of(Span))
    judge = sum(span.flops for span in spans if span.lane == LANE)
    return sum(span.flops for span in spans) - judge, judge
