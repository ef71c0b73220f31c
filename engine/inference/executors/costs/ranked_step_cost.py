"""Step cost of one replica over several ranks: each rank's operations, and their collectives.

Tensor ranks sum activations after attention and after the feed-forward of each layer, and after the
embedding, and gather logits. Data ranks gather tokens before experts and scatter sums after them.
Pipeline stages pass activations on; a step's sequences go through them in as many groups as there
are stages, one behind another, so that every group gains a token in one turn of all stages.
"""

from collections.abc import Callable, Iterator
from typing import TypeAlias

import numpy as np

from engine.hardware.cost import curves
from engine.hardware.cost.constants import Constants
from engine.hardware.device import Device
from engine.hardware.link import Link
from engine.inference.executors.costs.forward_work import Shape
from engine.inference.executors.costs.measured_step_cost import MeasuredCost
from engine.inference.executors.costs.ranks import Ranks
from engine.inference.executors.costs.step_cost import SINGLE, OpTime, StepCost
from engine.models.config import ModelConfig

BUBBLE = "bubble"
STREAMS = 2  # tensors that a stage passes on: hidden states and residual

Collective = Callable[[str, int, float], float]
"""Seconds of a collective by its name, ranks and bytes."""


def by_curves(device: Device, by: Link, found: Constants) -> Collective:
    """Collectives by fitted curves."""

    def seconds(name: str, ranks: int, size: float) -> float:
        return float(curves.collective(device, by, found, name, ranks, size).seconds)

    return seconds


def by_link(by: Link) -> Collective:
    """Rings of equal messages over a link, where no curves are known."""

    def seconds(name: str, ranks: int, size: float) -> float:
        return curves.ROUNDS[name] * (ranks - 1) * by.seconds(size / ranks)

    return seconds


class RankedCost:
    """Costs of steps of one replica; the same questions as `StepCost` answers."""

    def __init__(
        self,
        inner: StepCost | MeasuredCost,
        config: ModelConfig,
        ranks: Ranks,
        collective: Collective,
        by: Link,
    ) -> None:
        """`inner`: costs of what one tensor rank computes of all layers; `by`: between stages."""
        self.inner, self.config, self.ranks = inner, config, ranks
        self.collective, self.by = collective, by
        self.memory = inner.memory
        self.size = curves.BYTES[inner.dtype]
        self.sums: dict[tuple[int, int], list[tuple[str, float]]] = {}

    def shape(self, new_B: np.ndarray, context_B: np.ndarray, rows: int) -> Shape:
        """What matters of a step, as `ForwardWork.shape`."""
        return self.inner.shape(new_B, context_B, rows)

    def decode_shape(self, starts_B: np.ndarray, rows: int) -> Shape:
        """What matters of a step in which every sequence decodes."""
        return self.inner.decode_shape(starts_B, rows)

    def mixed_shape(
        self, starts_B: np.ndarray, new_B: np.ndarray, decodes: int, rows: int,
        seen: int | None = None,
    ) -> Shape:  # fmt: skip
        """What matters of a step whose first `decodes` sequences decode."""
        return self.inner.mixed_shape(starts_B, new_B, decodes, rows, seen)

    def total(self, shape: Shape) -> tuple[float, float, float]:
        """Seconds of a step, and flops and bytes of one rank in it."""
        if self.ranks.pipeline == 1:  # as `describe` adds up, without a value for each operation
            seconds, flops, moved = self.inner.total(shape)
            for _, each in self._exchanged(shape.tokens, shape.rows):
                seconds += each
            return seconds, flops, moved
        ops = self.describe(shape)
        return sum(o.seconds for o in ops), sum(o.flops for o in ops), sum(o.bytes for o in ops)

    def describe(self, shape: Shape) -> list[OpTime]:
        """Each operation of a rank, each kind of collective, and what a stage waits."""
        stages = self.ranks.pipeline
        groups = max(1, min(stages, shape.sequences))
        part = shape.share(groups)
        found = self.inner.describe(part)
        found += [
            OpTime(name, seconds, 0.0, 0.0, "link")
            for name, seconds in self._exchanged(part.tokens, part.rows)
        ]
        if stages == 1:
            return found
        passed = STREAMS * part.tokens * self.config.hidden * self.size
        found.append(OpTime("stages", (stages - 1) * self.by.seconds(passed), 0.0, 0.0, "link"))
        layers = -(-self.config.layers // stages) / self.config.layers
        apart = (*SINGLE, "gather", "stages")
        each = sum(o.seconds for o in found if o.name not in apart)
        last = sum(o.seconds for o in found if o.name in ("head", "gather"))
        alone = sum(o.seconds for o in found)
        wait = groups * (each * layers + last) - alone
        if wait > 0:
            found.append(OpTime(BUBBLE, wait, 0.0, 0.0, "link"))
        return found

    def _exchanged(self, tokens: int, rows: int) -> list[tuple[str, float]]:
        """Seconds of all collectives of a step of so many tokens and rows of logits."""
        if (tokens, rows) not in self.sums:
            self.sums[tokens, rows] = list(self._collectives(tokens, rows))
        return self.sums[tokens, rows]

    def _collectives(self, tokens: int, rows: int) -> Iterator[tuple[str, float]]:
        config, ranks = self.config, self.ranks
        hidden = tokens * config.hidden * self.size
        routed = sum(config.expert_layers)
        if ranks.tensor > 1:
            sums = 2 * config.layers + 1
            yield "all_reduce", sums * self.collective("all_reduce", ranks.tensor, hidden)
            logits = rows * config.vocab * self.size
            yield "gather", self.collective("all_gather", ranks.tensor, logits) if rows else 0.0
        if ranks.data > 1 and routed:
            whole = ranks.data * hidden
            each = self.collective("all_gather", ranks.data, whole)
            each += self.collective("reduce_scatter", ranks.data, whole)
            yield "expert_exchange", routed * each


Cost: TypeAlias = StepCost | MeasuredCost | RankedCost
