"""The knobs of training on replicas that talk little."""

from engine.core.config import Choice, Config, knob
from engine.training.low_communication.executor import ReplicaExecutor
from engine.training.low_communication.executors.in_process import InProcess
from engine.training.low_communication.job import Job
from engine.training.low_communication.method import Method
from engine.training.low_communication.methods.streaming_diloco import StreamingDiLoCo
from engine.training.low_communication.replica import Learning


class LowCommunicationConfig(Config):
    """A method, how many replicas follow it, and for how long."""

    method: Choice[Method] = knob(make=StreamingDiLoCo, doc="how replicas come to agree")
    replicas: int = knob(4, "copies of the model, each with its own text", low=1, high=64)
    steps: int = knob(128, "training steps of each replica", low=1, high=100_000, unit="steps")
    executor: Choice[ReplicaExecutor] = knob(make=InProcess, doc="where replicas run")
    beside: bool = knob(True, "first train with synchronous AdamW, for a curve to compare with")
    report: int = knob(16, "steps between judgements by held-out text", low=1, high=10_000,
                       unit="steps", group="reports")  # fmt: skip
    seed: int = knob(0, "of weights and windows, on top of the run's", low=0, high=10_000)
    learning: Learning = knob(make=Learning, doc="the tiny model and how it learns")

    def job(self, seed: int) -> Job:
        """What the executor is given."""
        return Job(
            self.method, self.learning, self.replicas, self.steps, self.report, seed + self.seed
        )
