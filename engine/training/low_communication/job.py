"""Training job as a value, and each replica's program: its steps, judged now and then."""

from dataclasses import dataclass, field

from torch import Tensor

from engine.distributed.program import Compute, Program
from engine.training.loop.learning_rate import learning_rate
from engine.training.low_communication.method import Loop, Method
from engine.training.low_communication.replica import Learning, Place, Replica
from engine.training.low_communication.text import Text


@dataclass(frozen=True)
class Job:
    """What all replicas do. `report`: steps between judgements by held-out text."""

    method: Method
    learning: Learning
    replicas: int
    steps: int
    report: int
    seed: int


@dataclass(frozen=True, slots=True)
class Sample:
    """A replica after `step` steps, `sent` bytes and losses in nats per character."""

    step: int
    sent: int
    held_out: float
    weights_P: Tensor


@dataclass
class Trainee:
    """A replica with its program and what has been seen of it so far."""

    replica: Replica
    loop: Loop
    job: Job
    samples: list[Sample] = field(default_factory=list)

    def program(self) -> Program[None]:
        """All steps; the last one also takes in what still travels."""
        job, learning = self.job, self.job.learning
        for step in range(job.steps):
            rate = learning_rate(step, job.steps, learning.rate, learning.warmup, learning.decay)
            yield from self.loop.step(step, rate)
            done = step + 1
            if done == job.steps:
                yield from self.loop.finish()
            if done % job.report == 0 or done == job.steps:
                loss = yield Compute("evaluate", self.replica.held_out_loss)
                weights_P = self.replica.weights_P.clone()
                self.samples.append(Sample(done, self.replica.sent, loss, weights_P))


def trainee(job: Job, rank: int, text: Text) -> Trainee:
    """Replica `rank` of the job, ready to begin. Raises BadInput where knobs do not fit."""
    replica = Replica(job.learning, Place(rank, job.replicas, job.seed), text)
    return Trainee(replica, job.method.loop(replica), job)
