"""All replicas in this process, on a virtual clock over a described network."""

from typing import ClassVar, Literal

from engine.core.config import knob
from engine.core.run import Live
from engine.distributed.program import Compute
from engine.hardware.link import Link
from engine.training.low_communication.executor import ReplicaExecutor
from engine.training.low_communication.executors.in_process import take_turns
from engine.training.low_communication.in_process_runtime import Described
from engine.training.low_communication.job import Job
from engine.training.low_communication.progress import Progress


class Modelled(ReplicaExecutor):
    """Losses and bytes are real, times are described: a step, a port out, a latency."""

    real: ClassVar[bool] = False
    formerly: ClassVar = ("described",)
    kind: Literal["modelled"] = "modelled"
    step: float = knob(0.05, "a replica's gradient and update", low=1e-6, high=100.0, unit="s",
                       log=True)  # fmt: skip
    bandwidth: float = knob(1.25e6, "a replica's port, one way", low=1.0, high=1e13, unit="B/s",
                            log=True)  # fmt: skip
    latency: float = knob(0.02, "before a message's first byte arrives", low=0.0, high=10.0,
                          unit="s")  # fmt: skip

    def run(self, job: Job, live: Live, progress: Progress) -> None:
        link = Link(name="described port", bandwidth=self.bandwidth, latency=self.latency)
        take_turns(job, live, progress, Described(self.seconds, link))

    def seconds(self, step: Compute) -> float:
        """Outer steps and judging take no time: they are small, or no part of training."""
        return self.step if step.name == "gradient" else 0.0
