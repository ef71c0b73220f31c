"""ZeRO-0: every replica holds everything, and gradients are summed in buckets."""

from collections.abc import Sequence
from typing import Literal

from torch import Tensor

from engine.core.config import knob
from engine.distributed.axis import Axis
from engine.training.parallel.buckets import Buckets
from engine.training.parallel.model import ShardedStage
from engine.training.parallel.zero import (
    FLOAT,
    MOMENTS,
    Bytes,
    Learning,
    Trained,
    Zero,
    adamw,
    counted,
    moments,
    numbers,
)


class Nothing(Zero):
    """Plain data parallelism."""

    kind: Literal["nothing"] = knob("nothing", doc="ZeRO-0: replicas hold everything")

    def trained(self, stage: ShardedStage, axis: Axis, learning: Learning) -> Trained:
        return Replicated(stage, axis, learning)

    def formula(self, shapes: Sequence[Sequence[int]], ranks: int, at: int) -> Bytes:
        whole = FLOAT * numbers(shapes)
        return Bytes(whole, whole, MOMENTS * whole)


class Replicated(Trained):
    """AdamW on every replica, from gradients summed while backward goes on."""

    def __init__(self, stage: ShardedStage, axis: Axis, learning: Learning) -> None:
        super().__init__(stage, axis, learning)
        self.named = stage.everything()
        self.buckets = Buckets(list(self.named.values()), axis)
        self.optimizer = adamw(self.named, learning)

    def finish(self) -> None:
        self.buckets.finish()

    def update(self) -> None:
        self.optimizer.step()

    def forget(self) -> None:
        self.optimizer.zero_grad()

    def gradients(self) -> dict[str, Tensor]:
        return {name: p.grad for name, p in self.named.items() if p.grad is not None}

    def weights(self) -> dict[str, Tensor]:
        return {name: p.detach() for name, p in self.named.items()}

    def held(self) -> Bytes:
        parameters = list(self.named.values())
        flat = [bucket.flat for bucket in self.buckets.buckets]
        return Bytes(
            counted(parameters),
            counted([*flat, *(p.grad for p in parameters)]),
            counted(moments(self.optimizer)),
        )
