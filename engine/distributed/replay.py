"""Replay: records a rank program's steps once and replays them, without recomputing tensors, over
links of other speeds.

What a program does next never depends on how long something took, so one run tells the steps for
every network.
"""

from collections.abc import Generator
from dataclasses import replace
from typing import Any, TypeVar

from engine.distributed.program import Compute, Program, Receive, Step, Wait, through

T = TypeVar("T")


def noted(program: Program[T], steps: list[Step]) -> Program[T]:
    """`program`, leaving its steps in `steps`; a wait there names its receive by place."""
    places: dict[int, int] = {}
    tickets: list[object] = []  # kept, so that no two have the same id

    def note(step: Step) -> Generator[Step, Any, Any]:
        answer = yield step
        if isinstance(step, Receive):
            places[id(answer)] = len(steps)
            tickets.append(answer)
        if isinstance(step, Compute):
            step = replace(step, work=nothing)
        steps.append(Wait(places[id(step.ticket)]) if isinstance(step, Wait) else step)
        return answer

    return through(program, note)


def replay(steps: list[Step]) -> Program[None]:
    """The same steps with nothing computed."""
    tickets: dict[int, object] = {}
    for place, step in enumerate(steps):
        answer = yield Wait(tickets[step.ticket]) if isinstance(step, Wait) else step
        if isinstance(step, Receive):
            tickets[place] = answer


def nothing() -> None:
    """The work of a step that is only timed."""
