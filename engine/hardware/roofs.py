"""The roofs a device puts over work, as plain rows for a run's header.

In comes a `Device`, measured or from its data sheet; out goes a list that `Opened.facts["roofs"]`
carries, so that a view can draw ceilings and judge points without knowing any device.
"""

from typing import Any

from engine.hardware.device import Device

THIS_MACHINE = "this-machine"  # slug of the measured device
LEVELS = ("L1", "shared", "L2", "L3")  # cache levels in the order of their speed
EXPONENTIAL, LAUNCH = "exponential", "launch"

Roof = dict[str, Any]


def roofs_of(device: Device, threads: int = 0) -> list[Roof]:
    """Every roof: `{"device", "name", "kind", "value", "grade", "level", "dtype"}`.

    `kind`: "bandwidth" (bytes per second; `level` says of what), "compute" (flops per second in
    `dtype`), "special" (exponentials per second) or "launch" (operations started per second).
    `grade`: "measured" or "sheet"; "modelled" where it was scaled. `threads`: how many work, 0 for
    all; fewer than all lower a measured machine's roofs to what one thread reaches, times their
    number, and never above what all reach.
    """
    if device.grade == "measured":
        return _measured(device, threads)
    return _sheet(device)


def _roof(device: Device, kind: str, name: str, value: float, **more: str) -> Roof:
    grade = "measured" if device.grade == "measured" else "sheet"
    row = {"kind": kind, "name": name, "value": float(value), "grade": grade}
    return {"device": slug(device), **row, "level": "", "dtype": "", **more}


def slug(device: Device) -> str:
    """A device's name in roofs and tags: one word."""
    return device.slug or "_".join(device.name.split())


def main_memory(device: Device) -> str:
    """The name of the level behind all caches."""
    return "HBM" if device.memory.startswith("HBM") else "DRAM"


def _sheet(device: Device) -> list[Roof]:
    level = main_memory(device)
    found = [_roof(device, "bandwidth", level, device.bandwidth, level=level)]
    for name in sorted(device.cache_bandwidth, key=_order):
        rate = device.cache_bandwidth[name]
        found.append(_roof(device, "bandwidth", name, rate, level=name))
    for dtype, rate in device.peaks.items():
        found.append(_roof(device, "compute", dtype, rate, dtype=dtype))
    if device.exponentials is not None:
        found.append(_roof(device, "special", "exponentials", device.exponentials))
    if device.launch > 0:
        found.append(_roof(device, "launch", "launches", 1 / device.launch))
    return found


def _order(level: str) -> tuple[int, str]:
    return (LEVELS.index(level) if level in LEVELS else len(LEVELS)), level


def _measured(device: Device, threads: int) -> list[Roof]:
    """From the best of what was measured: a ceiling is what the machine did once undisturbed."""
    found = []
    for level in ("DRAM", *sorted(device.cache_bandwidth, key=_order)):
        quantity = "read" if level == "DRAM" else f"read_{level}"
        found += _scaled(device, threads, quantity, "bandwidth", f"{level} read", level=level)
    found += _scaled(
        device, threads, "multiply_add", "compute", "float32 multiply-add", dtype="float32"
    )
    for dtype in device.peaks:
        found += _scaled(
            device, threads, f"matmul_{dtype}", "compute", f"{dtype} matmul", dtype=dtype
        )
    found += _scaled(device, threads, EXPONENTIAL, "special", "exponentials")
    if device.launch > 0:
        found.append(_roof(device, "launch", "launches", 1 / device.launch))
    return found


def _scaled(
    device: Device, threads: int, quantity: str, kind: str, name: str, **more: str
) -> list[Roof]:
    """The roof of a measured quantity for so many threads; none where it was not measured."""
    spread = device.spread.get(quantity)
    if spread is None:
        return []
    value = spread.high
    one = device.spread.get(f"{quantity}_one_thread")
    if not 0 < threads < device.threads or one is None:
        return [_roof(device, kind, name, value, **more)]
    alone = one.high
    grade = "measured" if threads == 1 else "modelled"
    if threads * alone >= value:
        return [_roof(device, kind, name, value, **more)]
    return [_roof(device, kind, name, threads * alone, **more) | {"grade": grade}]
