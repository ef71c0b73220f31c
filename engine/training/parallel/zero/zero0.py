"""ZeRO stage 0: every replica holds everything, and gradients are summed in buckets."""

from collections.abc import Iterator, Sequence
from typing import Literal

from torch import Tensor

from engine.core.config import knob
from engine.distributed.axis import Axis
from engine.training.parallel.tensor.model import ShardedStage
from engine.training.parallel.zero.buckets import Buckets
from engine.training.parallel.zero.zero import (
    FLOAT,
    MOMENTS,
    Bytes,
    Learning,
    LocalAdamW,
    Trained,
    TrainedHere,
    Zero,
    counted,
    numbers,
)


class Nothing(Zero):
    """Plain data parallelism."""

    kind: Literal["nothing"] = knob("nothing", doc="ZeRO-0: replicas hold everything")

    def trained(self, stages: Sequence[ShardedStage], axis: Axis, learning: Learning) -> Trained:
        return Replicated(stages, axis, learning)

    def formula(self, shapes: Sequence[Sequence[int]], ranks: int, at: int) -> Bytes:
        whole = FLOAT * numbers(shapes)
        return Bytes(whole, whole, MOMENTS * whole)


class Replicated(TrainedHere):
    """AdamW on every replica, from gradients summed while backward goes on."""

    def __init__(self, stages: Sequence[ShardedStage], axis: Axis, learning: Learning) -> None:
        super().__init__(stages, axis, learning)
        self.buckets = Buckets(list(self.named.values()), axis)
        self.optimizer = LocalAdamW(self.named, learning)

    def finish(self) -> None:
        self.buckets.finish()

    def slopes(self) -> Iterator[tuple[str, Tensor]]:
        # All replicas have all of them: the first one answers.
        return iter(()) if self.axis.at else self.optimizer.slopes()

    def scale(self, factor: float) -> None:
        for bucket in self.buckets.buckets:
            bucket.flat.mul_(factor)

    def gradients(self) -> dict[str, Tensor]:
        return {name: p.grad for name, p in self.named.items() if p.grad is not None}

    def weights(self) -> dict[str, Tensor]:
        return {name: p.detach() for name, p in self.named.items()}

    @property
    def keeper(self) -> int:
        return 0

    def held(self) -> Bytes:
        parameters = list(self.named.values())
        flat = [bucket.flat for bucket in self.buckets.buckets]
        return Bytes(
            counted(parameters),
            counted([*flat, *(p.grad for p in parameters)]),
            counted(list(self.optimizer.moments().values())),
        )
