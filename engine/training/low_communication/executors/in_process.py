"""All replicas in this process, on the wall clock."""

from collections.abc import Callable
from typing import Literal

from engine.core.events import AnyEvent
from engine.core.run import Live
from engine.kernels.threads import torch_threads
from engine.training.low_communication.executor import ReplicaExecutor
from engine.training.low_communication.in_process_runtime import Described, InProcessRuntime
from engine.training.low_communication.job import Job, Sample, trainee
from engine.training.low_communication.progress import Progress
from engine.training.low_communication.text import shipped_text

Samples = list[list[Sample]]


class InProcess(ReplicaExecutor):
    """The mechanism and its bytes are real; the time is that of replicas sharing one processor."""

    kind: Literal["in_process"] = "in_process"

    def run(self, job: Job, live: Live, progress: Progress) -> None:
        take_turns(job, live, progress, None)


def take_turns(job: Job, live: Live, progress: Progress, described: Described | None) -> None:
    """Run the job's replicas in turn; a person's commands are heard at every computation."""

    def watch(now: float, samples: Samples) -> None:
        seen = max(now, live.log.duration)
        live.poll(seen)
        live.report("training", len(samples[0]) * job.report, job.steps)
        progress.reached(samples, seen)

    progress.reached(trained(job, live.emit, watch, described), live.log.duration)


def trained(
    job: Job,
    emit: Callable[[AnyEvent], None],
    watch: Callable[[float, Samples], None],
    described: Described | None = None,
) -> Samples:
    """The samples of each replica after all steps; `watch` sees them as they grow, and the time."""
    text = shipped_text()
    trainees = [trainee(job, rank, text) for rank in range(job.replicas)]
    samples = [each.samples for each in trainees]

    def computed(now: float) -> None:
        # On a virtual clock nothing earlier than `now` can follow.
        turns.flush(now)
        watch(now, samples)

    turns = InProcessRuntime([each.program() for each in trainees], emit, computed, described)
    with torch_threads(1):  # as each real rank has
        turns.run()
    return samples
