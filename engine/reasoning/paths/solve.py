"""Countdown on parallel paths: every problem has a root, its paths and a summary.

In come a config and a mind, out come the problems' scores. Told of each problem, in its root's
lane: the answer and the verdict of replaying it; counters are in the lane `problems`.
"""

from collections import Counter
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import numpy as np

from engine.core.errors import BadInput
from engine.core.events import Level, Mark
from engine.reasoning.paths.config import PathsConfig
from engine.reasoning.paths.fan import Fan, Marks, Paths
from engine.reasoning.threads.mind import Mind, open_mind
from engine.reasoning.threads.reasoner import Reasoner
from engine.reasoning.threads.run import attempt, obey
from engine.reasoning.threads.telling import Emit
from engine.tasks.countdown import CountdownProblem
from engine.tasks.countdown_paths import (
    PATH_WORDS,
    SUMMARY,
    THINK,
    asked,
    path_ids,
    path_words,
)
from engine.tasks.countdown_search import even_problem
from engine.tasks.countdown_traces import judge, steps

LANE = "problems"
COLUMNS = ("right", "voted", "covered", "tokens", "critical", "summary")
Poll = Callable[[float], Iterable[dict[str, Any]]]
Report = Callable[[str, int, int], None]


def open_paths(config: PathsConfig) -> Mind:
    """The model of a config. Raises BadInput where its tokens are no words of paths."""
    mind = open_mind(config.reasoning())
    if mind.config.vocab != len(PATH_WORDS):
        raise BadInput(
            f"model {mind.name!r}: {mind.config.vocab} tokens, but paths through Countdown have "
            f"{len(PATH_WORDS)} words; take a model that `workbench train countdown-paths` makes"
        )
    return mind


def solve(
    config: PathsConfig, mind: Mind, emit: Emit, poll: Poll, report: Report
) -> tuple[np.ndarray, Reasoner]:
    """scores_PK, a row of `COLUMNS` for each problem in order, and the reasoner that thought."""
    reasoner = Reasoner(config.reasoning(), mind, mind.clock, emit)
    marks = Marks(tuple(path_ids(THINK)), path_ids([SUMMARY])[0])
    paths = Paths(reasoner, marks, config)
    problems: dict[str, CountdownProblem] = {}
    scores: dict[str, list[float]] = {}
    while len(scores) < config.problems:
        while len(problems) < config.problems and _room(config, paths):
            _begin(config, paths, problems)
        for command in poll(mind.clock.now()):
            attempt(reasoner, partial(obey, reasoner, command), LANE)
        for fan in paths.step():
            name = fan.root.name
            scores[name] = _scored(problems[name], fan)
            _tell(reasoner, problems[name], fan, scores)
        report("solving", len(scores), config.problems)
    return np.array([scores[name] for name in problems]), reasoner


def _room(config: PathsConfig, paths: Paths) -> bool:
    """Whether another problem may begin: always where none is under way."""
    fans, running = paths.fans, len(paths.board.running)
    return not fans or (len(fans) < config.together and running + config.width < config.threads)


def _begin(config: PathsConfig, paths: Paths, problems: dict[str, CountdownProblem]) -> None:
    """The next problem's root."""
    number = config.first + len(problems)
    problem = even_problem("test", number)
    problems[f"p{number}"] = problem
    paths.begin(f"p{number}", path_ids(asked(problem)), config.seed * 1_000_003 + number)


def _scored(problem: CountdownProblem, fan: Fan) -> list[float]:
    """`COLUMNS` of a problem that is over.

    The vote is for the answer that most paths state, however it is written; a path that states none
    has no vote, and of equals the first path's answer counts.
    """
    verdicts = [judge(problem, path_words(path.tokens)) for path in fan.paths]
    votes = Counter(verdict.answer for verdict in verdicts if verdict.answer)
    chosen = votes.most_common(1)[0][0] if votes else ""
    voted = any(verdict.right for verdict in verdicts if verdict.answer == chosen)
    summary = len(fan.root.tokens)
    return [
        float(judge(problem, path_words(fan.root.tokens)).right),
        float(voted),
        float(any(verdict.right for verdict in verdicts)),
        float(summary + sum(len(path.tokens) for path in fan.paths)),
        float(max([fan.root.depth, *(path.depth for path in fan.paths)])),
        float(summary),
    ]


def _tell(
    reasoner: Reasoner, problem: CountdownProblem, fan: Fan, scores: dict[str, list[float]]
) -> None:
    """The answer, the verdict and the counters of a problem that is over."""
    emit, now = reasoner.emit, reasoner.clock.now()
    name, words = fan.root.name, path_words(fan.root.tokens)
    answer, verdict = steps(words), judge(problem, words)
    emit(Mark(now, name, "answer", " ".join(map(str, answer)) if answer else "none"))
    said = "right" if verdict.right else "wrong"
    emit(Mark(now, name, "verdict", f"{said}: {verdict.reason}"))
    emit(Level(now, LANE, "done", float(len(scores))))
    for column in ("right", "voted", "covered"):
        place = COLUMNS.index(column)
        emit(Level(now, LANE, column, sum(row[place] for row in scores.values())))
