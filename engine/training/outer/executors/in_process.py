"""All replicas in this process, one after another, on the wall clock."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal

import torch

from engine.core.run import Live
from engine.training.outer.executor import Executor
from engine.training.outer.job import Job, trainee
from engine.training.outer.progress import Progress
from engine.training.outer.text import shipped_text
from engine.training.outer.turns import Described, Turns


class InProcess(Executor):
    """The mechanism and its bytes are real; the time is that of replicas taking turns."""

    kind: Literal["in_process"] = "in_process"

    def run(self, job: Job, live: Live, progress: Progress) -> None:
        take_turns(job, live, progress, None)


def take_turns(job: Job, live: Live, progress: Progress, described: Described | None) -> None:
    """Run the job's replicas in turn; a person's commands are heard at every computation."""
    text = shipped_text()
    trainees = [trainee(job, rank, text) for rank in range(job.replicas)]
    samples = [each.samples for each in trainees]

    def watch(now: float) -> None:
        seen = max(now, live.log.duration)
        live.poll(seen)
        live.report("training", turns.turns[0], max(1, 2 * job.steps))
        # On a virtual clock events up to `now` are out, and nothing earlier can follow.
        turns.flush(now)
        progress.reached(samples, seen)

    turns = Turns([each.program() for each in trainees], live.emit, watch, described)
    with one_thread():
        turns.run()
    progress.reached(samples, live.log.duration)


@contextmanager
def one_thread() -> Iterator[None]:
    """Torch with one thread, as each real rank has: sums are the same, and on so small a model
    more threads only wait for one another."""
    had = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(had)
