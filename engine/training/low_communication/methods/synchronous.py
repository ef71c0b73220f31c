"""Plain data parallelism: the mean gradient at every step."""

from dataclasses import dataclass
from typing import Literal

from engine.core.config import Choice, knob
from engine.distributed.program import Compute, Program
from engine.hardware.collectives import all_reduce_bytes
from engine.training.low_communication.codec import Codec
from engine.training.low_communication.codecs.float32 import Float32
from engine.training.low_communication.mean import ROUNDS, mean_of_all
from engine.training.low_communication.method import Method, Traffic
from engine.training.low_communication.replica import Replica


class Synchronous(Method):
    """AdamW on the mean gradient; all replicas stay the same."""

    kind: Literal["synchronous"] = "synchronous"
    codec: Choice[Codec] = knob(make=Float32, doc="gradients on the wire")

    def loop(self, replica: Replica) -> "SynchronousLoop":
        return SynchronousLoop(self, replica)

    def traffic(self, parameters: int, replicas: int) -> Traffic:
        size = all_reduce_bytes(replicas, self.codec.bytes(parameters))
        return Traffic(size, 1, 0, ROUNDS)


@dataclass
class SynchronousLoop:
    method: Synchronous
    replica: Replica

    def step(self, step: int, rate: float) -> Program[None]:
        replica = self.replica
        yield from replica.computed(step)
        task = f"gradient/{step}"
        mean_P = yield from mean_of_all(replica, self.method.codec, replica.gradient_P, task)
        update = replica.adamw.update
        yield Compute("update", lambda: update(replica.weights_P, mean_P, rate))

    def finish(self) -> Program[None]:
        yield from ()
