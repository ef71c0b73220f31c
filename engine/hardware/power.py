"""Energy from time: a device draws idle power always and the rest in proportion to its work."""

from engine.core.errors import BadInput
from engine.core.log import Log
from engine.core.measure import busy
from engine.hardware.device import Device


def watts(device: Device, utilisation: float, idle: float) -> float:
    """Power at `utilisation` (0 to 1) between `idle` watts and the device's sustained maximum."""
    if device.tdp is None:
        raise BadInput(f"device {device.name}: its power is not known; choose one with a tdp")
    return idle + (device.tdp - idle) * min(max(utilisation, 0.0), 1.0)


def joules(device: Device, log: Log, idle: float, lane: str = "engine") -> float:
    """Energy of a whole run in which the device worked whenever `lane` had a span open."""
    total = log.duration
    share = busy(log, lane) / total if total > 0 else 0.0
    return watts(device, share, idle) * total
