"""The driver of pruned parallel traces: each question's threads are judged, clustered, and vote.

Emits, beside what threads and their cache emit, in the lane of a question's first thread its answer
and verdict, and in the lane `judge` a span for each trace judged; counters of the lane `problems`:
`done`, `right`, and of the question just done `tokens`, `clusters`, `judge tokens`. Blobs are those
of `Scores`, and of the curves where a sweep is asked for.
"""

from functools import partial

from engine.core.clock import WallClock
from engine.core.events import Level, Mark
from engine.core.machine import describe
from engine.core.run import Live
from engine.reasoning.pruning.config import PruningConfig
from engine.reasoning.pruning.curves import FACTS, curves
from engine.reasoning.pruning.questions import Pruning, Question
from engine.reasoning.pruning.rehearsal import Whole, rehearse
from engine.reasoning.pruning.scores import Scores
from engine.reasoning.threads.mind import Mind, open_mind
from engine.reasoning.threads.reasoner import Reasoner
from engine.reasoning.threads.run import attempt, obey

LANE = "problems"


def run(config: PruningConfig, live: Live) -> None:
    """Answer the config's questions; `live` is where events go and commands come from."""
    live.report("opening the model", 0, 0)
    solve(config, open_mind(config.reasoning()), live)


def solve(config: PruningConfig, mind: Mind, live: Live) -> None:
    """The same with a mind at hand."""
    problems = list(enumerate(config.task.problems("test", config.problems, config.first)))
    report = partial(live.report, "letting all traces finish, unseen")
    whole: list[list[Whole]] = []

    def rehearsed() -> list[list[Whole]]:
        if not whole:
            whole.extend(rehearse(config, mind, problems, report))
        return whole

    def answers() -> dict[str, str]:
        return {trace.name: trace.answer for traces in rehearsed() for trace in traces}

    judging = config.judge.open(answers) if config.after else None
    clock = WallClock()
    live.open(
        config,
        clock,
        describe(),
        pages=config.pages,
        page_size=config.page_size,
        **mind.header(config.page_size),
        curves=FACTS if config.sweep else {},
        commands=["kill", "say"],
    )
    reasoner = Reasoner(config.reasoning(), mind, clock, live.emit)
    pruning = Pruning(config, reasoner, judging)
    scores = Scores(config.traces)
    waiting = problems[::-1]
    while waiting or pruning.questions:
        while waiting and pruning.room():
            pruning.begin(*waiting.pop())
        for command in live.poll(clock.now()):
            attempt(reasoner, partial(obey, reasoner, command), LANE)
        for question in pruning.step():
            _tell(live, clock.now(), question, pruning, scores)
        live.report("thinking", scores.done, config.problems)
    for name, array in scores.arrays().items():
        live.keep(clock.now(), name, array)
    if config.sweep:
        for name, array in curves(config, problems, rehearsed(), mind, live.report).items():
            live.keep(clock.now(), name, array)


def _tell(live: Live, now: float, question: Question, pruning: Pruning, scores: Scores) -> None:
    """The answer, the verdict and the counters of a question that is done."""
    answer = pruning.voted(question)
    right = pruning.is_right(question, answer)
    scores.take(question, pruning, right)
    live.emit(Mark(now, question.name, "answer", answer or "none"))
    live.emit(Mark(now, question.name, "verdict", "right" if right else "wrong"))
    judged = f"{len(question.clusters)} clusters" if question.judged else "not judged"
    said = f"{len(question.threads)} traces, {judged}, the vote is for {answer or 'nothing'}"
    live.emit(Mark(now, LANE, "vote", f"{question.name}: {said}"))
    for level, value in (
        ("done", scores.done), ("right", scores.right), ("tokens", question.tokens),
        ("clusters", len(question.clusters)), ("judge tokens", question.cost.tokens),
    ):  # fmt: skip
        live.emit(Level(now, LANE, level, float(value)))
