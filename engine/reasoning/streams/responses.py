"""Response times of streams, from a run's log: in forward passes, in tokens and in seconds.

Reactions are to questions that come while a model writes; waits are for thoughts and answers after
an input that it thinks about while it arrives.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from engine.core.events import AnyEvent, Mark, Span, Token
from engine.core.log import Log
from engine.reasoning.streams.words import suffix

ROUNDING = 1e-9  # s: a pass that ends as something arrives has not read it


def passes(events: Iterable[AnyEvent]) -> list[float]:
    """When each forward pass ended."""
    return [event.time for event in events if type(event) is Span and event.name == "step"]


def between(times: Iterable[float], arrival: float, until: float) -> int:
    """How many of these come after an arrival, up to `until`."""
    return sum(arrival + ROUNDING < time <= until for time in times)


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
    ended = passes(told)
    marks = [e for e in told if type(e) is Mark]
    found = []
    for place, questions in enumerate(asked_s):
        name = suffix(place, len(asked_s))
        react, heard, in_turn = (
            [mark.time for mark in marks if (mark.lane, mark.name) == (f"{lane}{name}", what)]
            for lane, what in (("say", "react"), ("ask", "ask"), ("all", "react"))
        )
        beside = zip(questions, _soonest(heard, react), strict=False)
        for arrival, at in [*zip(questions, in_turn, strict=False), *beside]:
            if at is not None:
                found.append(Reaction(between(ended, arrival, at), at - arrival))
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


@dataclass(frozen=True, slots=True)
class Wait:
    """Of one problem. `onset`: tokens of the input that came before its first thought.

    `onset_s`, `answer_s`: from the input's last arrival to the first thought and to the answer
    (negative before); `answer_passes`: forward passes that ended after that arrival, the one with
    the answer included; `chain`: tokens thought after the input was whole.
    """

    onset: int
    read: int
    onset_s: float
    answer_s: float
    answer_passes: int
    chain: int
    right: bool


def waits(log: Log) -> list[Wait]:
    """The waits of every problem of a run."""
    assert log.opened is not None
    whole = log.opened.facts["whole_s"]
    ended = passes(log)
    times: dict[str, list[float]] = {}
    for token in log.of(Token):
        times.setdefault(token.thread, []).append(token.time)
    verdicts = {mark.lane: mark.text for mark in log.of(Mark) if mark.name == "verdict"}
    found = []
    for place, arrival in enumerate(whole):
        name = suffix(place, len(whole))
        read, think = times[f"read{name}"], times[f"think{name}"]
        found.append(
            Wait(
                onset=sum(time <= think[0] for time in read),
                read=len(read),
                onset_s=think[0] - arrival,
                answer_s=think[-1] - arrival,
                answer_passes=between(ended, arrival, think[-1]),
                chain=between(think, arrival, think[-1]),
                right=verdicts[f"think{name}"] == "right",
            )
        )
    return found
