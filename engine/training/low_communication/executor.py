"""Executor of a low-communication training: runs the replicas' programs under a clock."""

from abc import abstractmethod

from engine.core.events import AnyEvent, Level, Span
from engine.core.executor import Executor
from engine.core.run import Live
from engine.core.tags import tag
from engine.distributed.program import Compute
from engine.training.low_communication.job import Job
from engine.training.low_communication.progress import Progress

LOSSES = {"gradient": "loss", "evaluate": "held_out_loss"}  # what a computation's answer is


class ReplicaExecutor(Executor):
    """Concrete ones lie one to a file in `executors`."""

    folder = "engine.training.low_communication.executors"

    @abstractmethod
    def run(self, job: Job, live: Live, progress: Progress) -> None:
        """Do the job, with its events in time order and its samples told to `progress`."""


def computed(lane: str, step: Compute, answer: object, start: float, now: float,
             grade: str = "") -> list[AnyEvent]:  # fmt: skip
    """What a computation leaves in the log: its span, and a loss where it found one."""
    said = tag(task=step.task, grade=grade)
    events: list[AnyEvent] = [Span(now, lane, step.name, start, step.flops, tag=said)]
    if isinstance(answer, float) and step.name in LOSSES:
        events.append(Level(now, lane, LOSSES[step.name], answer))
    return events
