"""How long streams take to react to a question, and how often they are right, from a run's log."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from engine.core.events import AnyEvent, Mark, Span
from engine.core.log import Log

ROUNDING = 1e-9  # s: a pass that ends as a question arrives has not heard it


@dataclass(frozen=True, slots=True)
class Reaction:
    """From a question's arrival to the first token of its answer."""

    passes: int  # forward passes that ended in between, the one that gave the token included
    seconds: float


def reactions(log: Log) -> tuple[list[Reaction], int]:
    """Those to all questions that were answered, and how many questions there were."""
    assert log.opened is not None
    return of_events(log, log.opened.facts["asked_s"])


def of_events(
    events: Iterable[AnyEvent], asked_s: Sequence[Sequence[float]]
) -> tuple[list[Reaction], int]:
    """The same, of events; `asked_s`: when the questions of each problem arrived."""
    told = list(events)
    passes = [e.time for e in told if type(e) is Span and e.name == "step"]
    marks = [e for e in told if type(e) is Mark]
    found = []
    for place, questions in enumerate(asked_s):
        name = str(place) if len(asked_s) > 1 else ""
        react, heard, in_turn = (
            [mark.time for mark in marks if (mark.lane, mark.name) == (f"{lane}{name}", what)]
            for lane, what in (("say", "react"), ("ask", "ask"), ("all", "react"))
        )
        beside = zip(questions, _soonest(heard, react), strict=False)
        for arrival, at in [*zip(questions, in_turn, strict=False), *beside]:
            if at is not None:
                between = sum(arrival + ROUNDING < time <= at for time in passes)
                found.append(Reaction(between, at - arrival))
    return found, sum(map(len, asked_s))


def _soonest(heard: Sequence[float], react: Sequence[float]) -> list[float | None]:
    """When the answer to each question began, if it did before the next question was heard."""
    ends = [*heard[1:], float("inf")]
    return [
        next((at for at in react if one < at <= until), None)
        for one, until in zip(heard, ends, strict=False)
    ]


def verdicts(log: Log) -> list[tuple[int, int]]:
    """Of each problem of a run: questions answered rightly, and questions."""
    found = []
    for mark in log.of(Mark):
        if mark.name == "verdict":
            said, _, rest = mark.text.partition(" of ")
            found.append((int(said), int(rest.split()[0])))
    return found
