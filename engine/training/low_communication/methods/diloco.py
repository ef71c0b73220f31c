"""Many steps alone, then one outer step on the mean of what they changed."""

from typing import Literal

from engine.core.config import Choice, knob
from engine.distributed.program import Compute, Program
from engine.training.low_communication.codec import Codec
from engine.training.low_communication.codecs.float32 import Float32
from engine.training.low_communication.mean import mean_of_all
from engine.training.low_communication.method import Method, Traffic, all_reduced
from engine.training.low_communication.nesterov import Nesterov
from engine.training.low_communication.replica import Replica


class DiLoCo(Method):
    """Douillard et al., arXiv 2311.08105, algorithm 1: everybody waits for the exchange."""

    kind: Literal["diloco"] = "diloco"
    every: int = knob(16, "steps between outer steps (H)", low=1, high=10_000, unit="steps")
    outer_rate: float = knob(0.7, "outer learning rate", low=0.0, high=2.0)
    momentum: float = knob(0.5, "outer Nesterov momentum", low=0.0, high=0.99)
    codec: Choice[Codec] = knob(make=Float32, doc="outer gradients on the wire")

    def loop(self, replica: Replica) -> "DiLoCoLoop":
        return DiLoCoLoop(self, replica)

    def traffic(self, parameters: int, replicas: int) -> Traffic:
        size, messages = all_reduced(self.codec.bytes(parameters), replicas)
        return Traffic(size, self.every, 0, messages)


class DiLoCoLoop:
    def __init__(self, method: DiLoCo, replica: Replica) -> None:
        self.method, self.replica = method, replica
        self.outer = Nesterov(replica.weights_P, method.outer_rate, method.momentum)

    def step(self, step: int, rate: float) -> Program[None]:
        replica = self.replica
        yield from replica.stepped(step, rate)
        if (step + 1) % self.method.every:
            return
        gone_P = self.outer.weights_P - replica.weights_P
        mean_P = yield from mean_of_all(replica, self.method.codec, gone_P, f"outer/{step}")
        yield Compute(
            "outer step",
            lambda: replica.weights_P.copy_(self.outer.step(mean_P)),
            task=f"outer/{step}",
        )

    def finish(self) -> Program[None]:
        yield from ()
