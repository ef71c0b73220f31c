"""Step cost by roofline: how long a forward pass takes on a described device, in closed form.

The roofline over each operation's flops and bytes. Each kind of operation is bound once for all
layers, plus a launch for each layer that has it. On a processor the engine runs a Llama-like step
in one call, which is charged to the first operation.
"""

from dataclasses import dataclass

from engine.hardware.device import Device
from engine.inference.executors.costs.forward_work import ForwardWork, Shape
from engine.models import fused_shapes
from engine.models.config import ModelConfig
from engine.models.footprint import layers_with

SINGLE = ("embedding", "head")  # once a step; the others once a layer that has them


@dataclass(frozen=True, slots=True)
class OpTime:
    """One kind of operation of a step. `roof`: "bandwidth", the dtype, or "launch".

    `low` and `high`: seconds between which nine in ten measurements lay, where that is known.
    """

    name: str
    seconds: float
    flops: float
    bytes: float
    roof: str
    low: float | None = None
    high: float | None = None


class StepCost(ForwardWork):
    """Costs of steps of one model on one device with weights and cache in `dtype`."""

    def __init__(self, config: ModelConfig, device: Device, dtype: str) -> None:
        super().__init__(config, dtype)
        self.device = device
        self.compute = device.reached(dtype)
        self.memory = device.reached("bandwidth")
        names = [op.name for op in self.operations]
        counts = [layers_with(config, name) for name in names]
        fused = dtype in fused_shapes.DTYPES and fused_shapes.in_one_call(config)
        if device.kind == "cpu" and fused:
            counts = [1, *[0] * (len(names) - 1)]
        self.launches = [device.launch * count for count in counts]  # seconds, by operation

    def total(self, shape: Shape) -> tuple[float, float, float]:
        """Seconds, flops and bytes of a step of that shape."""
        seconds = flops = moved = 0.0
        for (_, work, size), launch in zip(self.works(shape), self.launches, strict=True):
            compute, memory = work / self.compute, size / self.memory
            seconds += (compute if compute > memory else memory) + launch
            flops += work
            moved += size
        return seconds, flops, moved

    def describe(self, shape: Shape) -> list[OpTime]:
        """The same, operation by operation, with the roof that binds each."""
        found = []
        for (name, work, size), launch in zip(self.works(shape), self.launches, strict=True):
            compute, memory = work / self.compute, size / self.memory
            busy, roof = (compute, self.dtype) if compute > memory else (memory, "bandwidth")
            roof = "launch" if launch > busy else roof
            found.append(OpTime(name, busy + launch, work, size, roof))
        return found
