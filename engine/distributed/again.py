"""A program's steps noted while it runs, and run again without its work: other links, same steps.

What a program does next never depends on how long something took, so one run tells the steps for
every network.
"""

from dataclasses import replace
from typing import TypeVar

from engine.distributed.program import Compute, Program, Receive, Step, Wait

T = TypeVar("T")


def noted(program: Program[T], steps: list[Step]) -> Program[T]:
    """`program`, leaving its steps in `steps`; a wait there names its receive by place."""
    answer: object = None
    places: dict[int, int] = {}
    tickets: list[object] = []  # kept, so that no two have the same id
    while True:
        try:
            step = program.send(answer)
        except StopIteration as end:
            found: T = end.value
            return found
        answer = yield step
        if isinstance(step, Receive):
            places[id(answer)] = len(steps)
            tickets.append(answer)
        if isinstance(step, Compute):
            step = replace(step, work=nothing)
        steps.append(Wait(places[id(step.ticket)]) if isinstance(step, Wait) else step)


def again(steps: list[Step]) -> Program[None]:
    """The same steps with nothing computed."""
    tickets: dict[int, object] = {}
    for place, step in enumerate(steps):
        answer = yield Wait(tickets[step.ticket]) if isinstance(step, Wait) else step
        if isinstance(step, Receive):
            tickets[place] = answer


def nothing() -> None:
    """The work of a step that is only timed."""
