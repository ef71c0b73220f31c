"""Each replica in a process of its own, exchanging over a torch process group."""

from typing import ClassVar, Literal

import numpy as np
import torch

from engine.core.config import knob
from engine.core.run import Live
from engine.distributed.launch import launch
from engine.distributed.merge import merged
from engine.distributed.rank import Rank
from engine.distributed.real import follow
from engine.distributed.record import Record
from engine.training.low_communication.executor import ReplicaExecutor, computed
from engine.training.low_communication.job import Job, Sample, trainee
from engine.training.low_communication.progress import Progress
from engine.training.low_communication.text import shipped_text


class Real(ReplicaExecutor):
    """Real processes and messages; events are told when all ranks are done."""

    formerly: ClassVar = ("ranks",)
    kind: Literal["real"] = "real"
    limit: float = knob(120.0, "longest the ranks may take", low=1.0, high=86_400.0, unit="s")

    def run(self, job: Job, live: Live, progress: Progress) -> None:
        def poll() -> None:
            live.poll(0.0)  # before all that ranks will have to tell

        records = launch(work, job.replicas, job, limit=self.limit, poll=poll)
        for event in merged(records):
            live.emit(event)
        progress.reached([samples(record) for record in records], live.log.duration)


def work(rank: Rank, job: Job) -> None:
    """One rank's replica from beginning to end."""
    pupil = trainee(job, rank.rank, shipped_text())
    follow(rank, pupil.program(), told=computed)
    table = [(each.step, each.sent, each.held_out) for each in pupil.samples]
    rank.record.put("samples", np.array(table))
    rank.record.put("weights", np.stack([each.weights_P.numpy() for each in pupil.samples]))


def samples(record: Record) -> list[Sample]:
    """What a rank's record says of its replica."""
    rows, weights = record.array("samples"), record.array("weights")
    return [
        Sample(int(step), int(sent), float(loss), torch.from_numpy(row))
        for (step, sent, loss), row in zip(rows, weights, strict=True)
    ]
