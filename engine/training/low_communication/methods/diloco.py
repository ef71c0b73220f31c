"""Many steps alone, then one outer step on the mean of what they changed."""

from typing import Literal

import torch
from torch import Tensor

from engine.core.config import Choice, knob
from engine.distributed.program import Compute, Program
from engine.hardware.collectives import all_reduce_bytes
from engine.training.low_communication.codec import Codec
from engine.training.low_communication.codecs.float32 import Float32
from engine.training.low_communication.mean import ROUNDS, mean_of_all
from engine.training.low_communication.method import Method, Traffic
from engine.training.low_communication.replica import Replica


class DiLoCo(Method):
    """Douillard et al., arXiv 2311.08105, algorithm 1: everybody waits for the exchange."""

    kind: Literal["diloco"] = "diloco"
    every: int = knob(
        16,
        "steps between outer steps (H)",
        low=1,
        high=10_000,
        unit="steps",
        called="Inner steps (H)",
    )
    outer_rate: float = knob(0.7, "outer learning rate", low=0.0, high=2.0)
    momentum: float = knob(0.5, "outer Nesterov momentum", low=0.0, high=0.99)
    codec: Choice[Codec] = knob(make=Float32, doc="outer gradients on the wire")

    def loop(self, replica: Replica) -> "DiLoCoLoop":
        return DiLoCoLoop(self, replica)

    def traffic(self, parameters: int, replicas: int) -> Traffic:
        size = all_reduce_bytes(replicas, self.codec.bytes(parameters))
        return Traffic(size, self.every, 0, ROUNDS)


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


class Nesterov:
    """State for P parameters (DiLoCo, arXiv 2311.08105, algorithm 1)."""

    def __init__(self, weights_P: Tensor, rate: float, momentum: float) -> None:
        self.weights_P = weights_P.clone()
        self.rate, self.momentum = rate, momentum
        self.velocity_P = torch.zeros_like(weights_P)

    def step(self, outer_gradient_P: Tensor) -> Tensor:
        """The outer weights after one step; the caller must not write into them."""
        self.velocity_P.mul_(self.momentum).add_(outer_gradient_P)
        self.weights_P.sub_(self.rate * (outer_gradient_P + self.momentum * self.velocity_P))
        return self.weights_P
