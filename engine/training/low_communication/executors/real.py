"""Each replica in a process of its own, exchanging over a torch process group."""

from collections.abc import Generator
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

import numpy as np
import torch
from torch import Tensor

from engine.core.config import knob
from engine.core.run import Live
from engine.distributed.launch import launch
from engine.distributed.merge import merged
from engine.distributed.program import Program, Send, Step, through
from engine.distributed.rank import Rank
from engine.distributed.real import follow
from engine.distributed.record import Record
from engine.training.low_communication.executor import ReplicaExecutor, computed
from engine.training.low_communication.job import Job, Sample, trainee
from engine.training.low_communication.progress import Progress
from engine.training.low_communication.text import shipped_text

Fault = Literal["none", "stale", "lost"]


class Real(ReplicaExecutor):
    """Real processes and messages; events are told when all ranks are done."""

    formerly: ClassVar = ("ranks",)
    kind: Literal["real"] = "real"
    limit: float = knob(120.0, "longest the ranks may take", low=1.0, high=86_400.0, unit="s")
    fault: Fault = knob(
        "none", "What goes wrong between the ranks: the last one's messages carry what it sent the "
        "time before, or zeros", group="faults",
    )  # fmt: skip

    def run(self, job: Job, live: Live, progress: Progress) -> None:
        def poll() -> None:
            live.poll(0.0)  # before all that ranks will have to tell

        task = RankTask(job, self.fault)
        records = launch(work, job.replicas, task, limit=self.limit, poll=poll)
        for event in merged(records):
            live.emit(event)
        progress.reached([samples(record) for record in records], live.log.duration)


@dataclass(frozen=True)
class RankTask:
    """What every rank is given."""

    job: Job
    fault: Fault


def work(rank: Rank, task: RankTask) -> None:
    """One rank's replica from beginning to end."""
    pupil = trainee(task.job, rank.rank, shipped_text())
    program = pupil.program()
    if task.fault != "none" and rank.rank == rank.ranks - 1:
        program = faulty(program, task.fault)
    follow(rank, program, told=computed)
    table = [(each.step, each.sent, each.held_out) for each in pupil.samples]
    rank.record.put("samples", np.array(table))
    rank.record.put("weights", np.stack([each.weights_P.numpy() for each in pupil.samples]))


def faulty(program: Program[None], fault: Fault) -> Program[None]:
    """`program` whose messages keep their lengths and hold what the one before of the same kind
    and target held (zeros the first time), or always zeros."""
    before: dict[tuple[int, str, int], Tensor] = {}

    def step(wanted: Step) -> Generator[Step, Any, Any]:
        if not isinstance(wanted, Send):
            return (yield wanted)
        (sent,) = wanted.tensors
        said = wanted.target, wanted.task.partition("/")[0], sent.numel()
        old = before.get(said, torch.zeros_like(sent))
        if fault == "stale":
            before[said] = sent.clone()
        return (yield replace(wanted, tensors=[old]))

    return through(program, step)


def samples(record: Record) -> list[Sample]:
    """What a rank's record says of its replica."""
    rows, weights = record.array("samples"), record.array("weights")
    return [
        Sample(int(step), int(sent), float(loss), torch.from_numpy(row))
        for (step, sent, loss), row in zip(rows, weights, strict=True)
    ]
