"""What studies read from logs of reasoning runs: shares and differences in words, who said what."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np
import torch
from torch import Tensor

from engine.core.events import AnyEvent, Branch, Mark, Token
from engine.core.intervals import of_mean, wilson
from engine.core.log import Log
from engine.models.config import ModelConfig
from engine.models.gathered import Cast
from engine.models.model import Model
from engine.tasks.task import Problem

Weights: TypeAlias = tuple[ModelConfig, dict[str, Tensor]]


def weights_of(model: Model) -> Weights:
    """A model's shape and its weights by name, in float32."""
    return model.config, dict(Cast(model.weights, torch.float32))


def share(right_P: np.ndarray) -> str:
    """A share of problems with its 95% interval."""
    low, high = wilson(float(right_P.sum()), len(right_P))
    return f"{right_P.mean():.1%} [{low:.1%}, {high:.1%}]"


def apart(ours_P: np.ndarray, theirs_P: np.ndarray) -> tuple[float, str]:
    """The low end of the interval of the difference over problems, without what sums leave of
    rounding, and all of it as text."""
    low, high = of_mean((ours_P - theirs_P)[:, None])
    mean = float((ours_P - theirs_P).mean())
    return round(float(low[0]), 12), f"difference {mean:+.1%} [{low[0]:+.1%}, {high[0]:+.1%}]"


def said_by(events: Iterable[AnyEvent]) -> dict[str, str]:
    """What each thread and request has said."""
    said: dict[str, str] = {}
    for event in events:
        if isinstance(event, Token) and event.accepted:
            said[event.thread] = said.get(event.thread, "") + event.text
    return said


def votes(log: Log) -> dict[str, tuple[str, bool]]:
    """By the lane it is told in: a problem's answer, and whether that is right."""
    answers = {mark.lane: mark.text for mark in log.of(Mark) if mark.name == "answer"}
    rights = {mark.lane: mark.text for mark in log.of(Mark) if mark.name == "verdict"}
    return {name: (answer, rights[name].startswith("right")) for name, answer in answers.items()}


class Written(NamedTuple):
    """A thread: the texts of its tokens, how it ended, its answer ("" if none or not whole)."""

    name: str
    pieces: list[str]
    state: str
    answer: str
    right: bool


def written(log: Log, problems: Sequence[Problem]) -> list[list[Written]]:
    """The threads of each problem in their order; the problems by their numbers."""
    pieces: dict[str, list[str]] = {}
    states: dict[str, str] = {}
    for event in log:
        if isinstance(event, Token):
            pieces.setdefault(event.thread, []).append(event.text)
        elif isinstance(event, Branch):
            states[event.thread] = event.state
    threads: list[list[Written]] = [[] for _ in problems]
    for name, state in states.items():
        number = int(name.partition(".")[0][1:])
        said = pieces.get(name, [])
        verdict = problems[number].check("".join(said))
        whole = state == "finished"
        answer = verdict.answer if whole else ""
        threads[number].append(Written(name, said, state, answer, whole and verdict.right))
    return threads
