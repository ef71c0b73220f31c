"""Step cost by roofline: how long a forward pass takes on a described device, in closed form.

The roofline over each operation's flops and bytes. Each kind of operation is bound once for all
layers, plus a launch for each layer that has it. On a processor the engine runs a Llama-like step
in one call, which is charged to the first operation; its products take rows by fours, and what they
read is not hidden behind what they compute: an operation takes as long as both.
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
        known = dtype in fused_shapes.DTYPES and fused_shapes.in_one_call(config)
        self.fused = device.kind == "cpu" and known
        if self.fused:
            counts = [1, *[0] * (len(names) - 1)]
        self.launches = [device.launch * count for count in counts]  # seconds, by operation

    def asked(self, shape: Shape) -> list[float]:
        """Flops of each operation that its time goes by: of rows as products take them."""
        if self.fused:
            tokens, rows = fused_shapes.taken(shape.tokens), fused_shapes.taken(shape.rows)
            shape = shape._replace(tokens=tokens, rows=rows)
        return [work for _, work, _ in self.works(shape)]

    def total(self, shape: Shape) -> tuple[float, float, float]:
        """Seconds, flops and bytes of a step of that shape."""
        if self.fused:
            ops = self.describe(shape)
            return sum(o.seconds for o in ops), sum(o.flops for o in ops), sum(o.bytes for o in ops)
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
        works, asked = self.works(shape), self.asked(shape)
        for (name, work, size), part, launch in zip(works, asked, self.launches, strict=True):
            compute, memory = part / self.compute, size / self.memory
            busy, roof = (compute, self.dtype) if compute > memory else (memory, "bandwidth")
            busy = compute + memory if self.fused else busy
            roof = "launch" if launch > busy else roof
            found.append(OpTime(name, busy + launch, work, size, roof))
        return found
