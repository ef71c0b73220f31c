"""solve: the loop that puts problems to a method until all are over, and `drive`, a run of it.

Told of each problem, in its lane: the answer and the verdict; counters of the lane `problems` are
`done`, `right` and what else a method counts, and the figures of the problem just done.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from engine.core.clock import Clock, WallClock
from engine.core.errors import BadInput
from engine.core.events import AnyEvent, Level, Mark
from engine.core.run import Live
from engine.reasoning.solving.config import ThreadGroupConfig
from engine.reasoning.solving.method import Asked, Attempt, Method, Result
from engine.reasoning.solving.scores import Scores
from engine.reasoning.threads.loaded_model import LoadedModel, open_model
from engine.reasoning.threads.reasoner import Reasoner
from engine.reasoning.threads.run import keep

LANE = "problems"


class Listener(NamedTuple):
    """Who hears of a run: events, a person's commands at a moment, and how far it is."""

    emit: Callable[[AnyEvent], None]
    poll: Callable[[float], Iterable[dict[str, Any]]]
    report: Callable[[str, float, float], None]

    @classmethod
    def to(cls, live: Live) -> "Listener":
        """A run's log and the person in front of it."""
        return cls(live.emit, live.poll, live.report)

    @classmethod
    def silent(cls) -> "Listener":
        """Nobody."""
        return cls(lambda event: None, lambda now: (), lambda what, done, total: None)


def tell(to: Listener, now: float, asked: Asked, result: Result, scores: Scores) -> None:
    """The answer, the verdict and the counters of a problem that is over."""
    lane, said = result.lane or asked.name, "right" if result.right else "wrong"
    to.emit(Mark(now, lane, "answer", result.answer or "none"))
    to.emit(Mark(now, lane, "verdict", f"{said}: {result.reason}" if result.reason else said))
    to.emit(Level(now, LANE, "done", float(len(scores))))
    for name in ("right", *result.counts):
        to.emit(Level(now, LANE, name, scores.total(name)))
    for name, value in result.figures.items():
        if isinstance(value, int | float):
            to.emit(Level(now, LANE, name, float(value)))


def silent(to: Listener, now: float, asked: Asked, result: Result, scores: Scores) -> None:
    """Nothing of a problem that is over: its method has told of it."""


def solve(
    method: Method[Attempt],
    problems: Sequence[Asked],
    clock: Clock,
    to: Listener,
    ended: Callable[[Attempt], None] = lambda attempt: None,
    tell: Callable[[Listener, float, Asked, Result, Scores], None] = tell,
) -> Scores:
    """Every problem through the method; `tell` says of each what came of it, and `ended` sees each
    attempt as it is over.

    Raises BadInput where a problem cannot begin at all; what a person asks for and cannot be done
    is told, and the others go on.
    """
    scores = Scores()
    waiting = list(problems)[::-1]
    while len(scores) < len(problems):
        while waiting and method.room():
            method.begin(waiting.pop())
        now = clock.now()
        for command in to.poll(now):
            try:
                method.obey(command)
            except BadInput as fault:
                to.emit(Mark(clock.now(), LANE, "refuse", str(fault)))
        for attempt in method.step():
            asked, result = method.asked(attempt), method.result(attempt)
            scores.take(asked.number, result)
            tell(to, clock.now(), asked, result, scores)
            ended(attempt)
        to.report("solving", len(scores), len(problems))
    return scores


def load(config: ThreadGroupConfig, live: Live) -> LoadedModel:
    """The model of a run about to open. Raises BadInput."""
    live.report("opening the model", 0, 0)
    return open_model(config.reasoning())


def drive(
    config: ThreadGroupConfig,
    live: Live,
    loaded: LoadedModel,
    method: Callable[[Reasoner], Method[Attempt]],
) -> None:
    """A run: open its log, solve its problems by threads, keep scores and, where asked, logits."""
    clock = WallClock()
    live.open(
        config,
        clock,
        pages=config.pages,
        page_size=config.page_size,
        **loaded.header(config.page_size),
        commands=["kill", "say"],
    )
    reasoner = Reasoner(config.reasoning(), loaded, clock, live.emit)
    scores = solve(method(reasoner), list(config.asked()), clock, Listener.to(live))
    scores.keep(live, clock.now())
    if config.keep_logits:
        keep(reasoner, live, clock.now())
