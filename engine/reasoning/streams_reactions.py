"""How long streams take to react to a question, and how often they are right, from a run's log."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from engine.core.events import AnyEvent, Mark, Span
from engine.core.log import Log


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
    marks = [e for e in told if type(e) is Mark and e.name == "react"]
    found = []
    for place, questions in enumerate(asked_s):
        name = str(place) if len(asked_s) > 1 else ""
        beside = [mark.time for mark in marks if mark.lane == f"say{name}"]
        in_turn = [mark.time for mark in marks if mark.lane == f"all{name}"]
        pairs = [*zip(questions, in_turn, strict=False), *_soonest(questions, beside)]
        for arrival, react in pairs:
            between = sum(arrival < time <= react for time in passes)
            found.append(Reaction(between, react - arrival))
    return found, sum(map(len, asked_s))


def _soonest(questions: Sequence[float], react: Sequence[float]) -> list[tuple[float, float]]:
    """Each question with the first answer begun before the next question, if there is one."""
    found = []
    for arrival, until in zip(questions, [*questions[1:], float("inf")], strict=True):
        found += [(arrival, time) for time in react if arrival < time <= until][:1]
    return found


def verdicts(log: Log) -> tuple[int, int]:
    """Questions answered rightly, and questions, over all problems of a run."""
    right = total = 0
    for mark in log.of(Mark):
        if mark.name == "verdict":
            said, _, rest = mark.text.partition(" of ")
            right, total = right + int(said), total + int(rest.split()[0])
    return right, total
