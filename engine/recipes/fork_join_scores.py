"""Scores of a model that forks and joins: serial and forked on the same test problems."""

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from engine.core.events import Token
from engine.core.intervals import wilson
from engine.core.run import Run
from engine.reasoning.fork_join.fork_join import ForkJoinConfig, run
from engine.reasoning.solving.scores import scores_of
from engine.tasks.part_sums import PartSums

PROBLEMS = 400
ASKED = (PartSums(parts=3), PartSums(parts=4))
MODES: tuple[Literal["serial", "forked"], ...] = ("serial", "forked")


def scores(folder: Path, fast: bool) -> dict[str, tuple[float, float, float, int]]:
    """(share that is right, its 95% interval, problems) of each way and size."""
    found = {}
    for task in ASKED:
        for mode in MODES:
            config = ForkJoinConfig(
                model=str(folder),
                task=task,
                mode=mode,
                problems=6 if fast else PROBLEMS,
                at_once=64,
            )
            right_P = scores_of(Run.execute(run, config).log)["right"]
            right, n = int(right_P.sum()), len(right_P)
            found[f"{task.parts} parts, {mode}"] = (right / n, *wilson(right, n), n)
    return found


def samples(folder: Path) -> Sequence[str]:
    """One test problem each way, a line for each request."""
    found = []
    for mode in MODES:
        config = ForkJoinConfig(model=str(folder), mode=mode, problems=1)
        log = Run.execute(run, config).log
        said: dict[str, str] = {}
        for token in log.of(Token):
            said[token.thread] = said.get(token.thread, "") + token.text
        (problem,) = config.task.problems("test", 1)
        lines = (f"{name}: {text}" for name, text in said.items())
        found.append("\n".join([problem.prompt + config.begin, *lines]))
    return found
