"""Step cost by operations: each takes the seconds that measurements tell, else the roofline's.

The base of what an operator profile and fitted curves say of a forward pass. Work in flops and
bytes, and the roof that binds an operation, are always those of `step_cost`.
"""

from abc import ABC, abstractmethod
from dataclasses import replace

import numpy as np

from engine.hardware.device import Device
from engine.inference.executors.costs.forward_work import Shape
from engine.inference.executors.costs.step_cost import OpTime, StepCost
from engine.models.config import ModelConfig

ATTENTION = "attention"


class MeasuredCost(ABC):
    """Costs of steps of one model on one device; the same questions as `StepCost` answers."""

    def __init__(self, config: ModelConfig, device: Device, dtype: str) -> None:
        self.plain = StepCost(config, device, dtype)
        self.config, self.device, self.dtype = config, device, dtype
        self.memory = self.plain.memory  # bytes per second

    @abstractmethod
    def _seconds(self, name: str, flops: float, size: float, shape: Shape) -> float | None:
        """Of one operation of all layers, launches included; None where nothing is known."""

    @abstractmethod
    def _interval(self, name: str, seconds: float, shape: Shape) -> tuple[float, float] | None:
        """Seconds between which nine in ten measurements of an operation lay, if that is known."""

    def shape(self, new_B: np.ndarray, context_B: np.ndarray, rows: int) -> Shape:
        """What matters of a step, as `ForwardWork.shape`."""
        return self.plain.shape(new_B, context_B, rows)

    def decode_shape(self, starts_B: np.ndarray, rows: int) -> Shape:
        """What matters of a step in which every sequence decodes."""
        return self.plain.decode_shape(starts_B, rows)

    def mixed_shape(
        self, starts_B: np.ndarray, new_B: np.ndarray, decodes: int, rows: int,
        seen: int | None = None,
    ) -> Shape:  # fmt: skip
        """What matters of a step whose first `decodes` sequences decode."""
        return self.plain.mixed_shape(starts_B, new_B, decodes, rows, seen)

    def attention(self, shape: Shape) -> float | None:
        """Seconds of attention in all layers, which alone depends on more than a step's tokens and
        rows of logits; None where nothing but the roofline is known."""
        flops, size = next(w[1:] for w in self.plain.works(shape) if w[0] == ATTENTION)
        return self._seconds(ATTENTION, flops, size, shape)

    def total(self, shape: Shape) -> tuple[float, float, float]:
        """Seconds, flops and bytes of a step of that shape."""
        seconds = flops = moved = 0.0
        plain = self.plain
        for (name, work, size), launch in zip(plain.works(shape), plain.launches, strict=True):
            told = self._seconds(name, work, size, shape)
            if told is None:
                told = max(work / plain.compute, size / plain.memory) + launch
            seconds += told
            flops += work
            moved += size
        return seconds, flops, moved

    def describe(self, shape: Shape) -> list[OpTime]:
        """The same, operation by operation, with intervals; `roof` is the roofline's."""
        return [self._told(op, shape) for op in self.plain.describe(shape)]

    def _told(self, op: OpTime, shape: Shape) -> OpTime:
        told = self._seconds(op.name, op.flops, op.bytes, shape)
        seconds = op.seconds if told is None else told
        low, high = self._interval(op.name, seconds, shape) or (None, None)
        return replace(op, seconds=seconds, low=low, high=high)
