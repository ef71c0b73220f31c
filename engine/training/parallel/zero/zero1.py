"""ZeRO stage 1: each replica keeps the moments of its share of the numbers, and updates that share.

Gradients are reduce-scattered and weights gathered, which together move what an all-reduce does.
Shape letters: P all numbers of a rank's model side by side, with a few of nought behind.
"""

from collections.abc import Iterator, Sequence
from typing import Literal

import torch
from torch import Tensor

from engine.core.config import knob
from engine.distributed.axis import Axis
from engine.training.loop.flat_adamw import FlatAdamW
from engine.training.parallel.tensor.model import ShardedStage
from engine.training.parallel.zero.zero import (
    FLOAT,
    MOMENTS,
    Bytes,
    Learning,
    Trained,
    Zero,
    counted,
    numbers,
)


class Optimizer(Zero):
    """Optimiser states are dealt; weights and gradients are whole."""

    kind: Literal["optimizer"] = knob("optimizer", doc="ZeRO-1: moments are dealt to replicas")

    def trained(self, stages: Sequence[ShardedStage], axis: Axis, learning: Learning) -> Trained:
        return Dealt(stages, axis, learning)

    def formula(self, shapes: Sequence[Sequence[int]], ranks: int, at: int) -> Bytes:
        share = -(-numbers(shapes) // ranks)
        whole = FLOAT * share * ranks
        return Bytes(whole, whole, MOMENTS * FLOAT * share)


class Dealt(Trained):
    """Weights and gradients are views of two flat vectors, of which each replica has a share."""

    def __init__(self, stages: Sequence[ShardedStage], axis: Axis, learning: Learning) -> None:
        super().__init__(stages, axis, learning)
        share = -(-sum(p.numel() for p in self.named.values()) // axis.size)
        kind = next(iter(self.named.values())).dtype
        self.weights_P = torch.zeros(share * axis.size, dtype=kind, device=axis.rank.device)
        self.gradient_P = torch.zeros_like(self.weights_P)
        decay_P = torch.zeros_like(self.weights_P)
        at = 0
        for parameter in self.named.values():
            place = slice(at, at + parameter.numel())
            at = place.stop
            self.weights_P[place] = parameter.detach().flatten()
            parameter.data = self.weights_P[place].view_as(parameter)
            parameter.grad = self.gradient_P[place].view_as(parameter)
            decay_P[place] = learning.weight_decay if parameter.ndim > 1 else 0.0
        self.own = slice(axis.at * share, (axis.at + 1) * share)
        self.share_P = torch.zeros(share, dtype=kind, device=axis.rank.device)
        self.adamw = FlatAdamW(
            decay_P[self.own].clone(), learning.beta1, learning.beta2, learning.eps
        )

    def finish(self) -> None:
        self.share_P = self.axis.reduce_scatter(self.gradient_P, task="gradients")

    def slopes(self) -> Iterator[tuple[str, Tensor]]:
        at = 0
        for name, parameter in self.named.items():
            start, stop = (max(0, min(place - self.own.start, len(self.share_P)))
                           for place in (at, at + parameter.numel()))  # fmt: skip
            at += parameter.numel()
            if stop > start:
                yield name, self.share_P[start:stop]

    def scale(self, factor: float) -> None:
        self.share_P.mul_(factor)

    def update(self, rate: float) -> None:
        self.adamw.update(self.weights_P[self.own], self.share_P, rate)
        self.filled()

    def forget(self) -> None:
        self.gradient_P.zero_()

    def gradients(self) -> dict[str, Tensor]:
        whole_P = self.axis.all_gather(self.share_P)
        parts = whole_P.split([*self._sizes(), len(whole_P) - sum(self._sizes())])
        named = zip(self.named.items(), parts[:-1], strict=True)
        return {name: part.view_as(parameter) for (name, parameter), part in named}

    def weights(self) -> dict[str, Tensor]:
        return {name: p.detach() for name, p in self.named.items()}

    def state(self) -> dict[str, Tensor]:
        moments = {"momentum": self.adamw.momentum_P, "variance": self.adamw.variance_P}
        return {"weights": self.weights_P[self.own], **moments}

    def ready(self, steps: int) -> None:
        self.adamw.count = steps

    def filled(self) -> None:
        if self.axis.size > 1:
            own_P = self.weights_P[self.own]
            self.weights_P.copy_(self.axis.all_gather(own_P, task="weights"))

    def held(self) -> Bytes:
        states = [self.adamw.momentum_P, self.adamw.variance_P]
        return Bytes(
            counted(list(self.named.values())),
            counted([p.grad for p in self.named.values()]),
            counted(states),
        )

    def _sizes(self) -> list[int]:
        return [parameter.numel() for parameter in self.named.values()]
