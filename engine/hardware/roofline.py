"""The roofline: work is bound by arithmetic or by memory, whichever takes longer.

After Williams, Waterman and Patterson, CACM 2009. Launch time comes on top: it is what binds work
too small for either roof.
"""

from dataclasses import dataclass

from engine.hardware.device import Device


@dataclass(frozen=True, slots=True)
class Bound:
    """How long one operation takes and what binds it.

    `roof`: "bandwidth", a dtype, or "launch", whichever takes the largest part of `seconds`.
    """

    seconds: float
    roof: str


def bound(device: Device, flops: float, size: float, dtype: str) -> Bound:
    """One operation of `flops` arithmetic in `dtype` that moves `size` bytes of device memory."""
    compute = flops / device.reached(dtype) if flops > 0 else 0.0
    memory = size / device.reached("bandwidth")
    work, roof = (compute, dtype) if compute > memory else (memory, "bandwidth")
    return Bound(work + device.launch, "launch" if device.launch > work else roof)


def attainable(device: Device, intensity: float, dtype: str) -> float:
    """Flops per second at `intensity` flops per byte, under the reached roofs."""
    return min(device.reached(dtype), intensity * device.reached("bandwidth"))


def ridge(device: Device, dtype: str) -> float:
    """Flops per byte at which arithmetic begins to bind instead of memory."""
    return device.reached(dtype) / device.reached("bandwidth")
