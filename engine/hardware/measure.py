"""Measures the machine it runs on: how fast it reads, copies, multiplies and starts a kernel.

Out comes a `Device` with grade "measured", the date, and the scatter of every quantity. It is kept
in a folder of the user's, since measuring takes seconds; torch and numba load only to measure.
"""

import json
import logging
import os
import statistics
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from engine.core import machine
from engine.core.errors import BadInput
from engine.core.limits import read_text
from engine.core.paths import own_cache
from engine.core.writing import write_text
from engine.hardware.device import Device, Spread
from engine.hardware.roofs import Roof, roofs_of

FILE = "machine.json"
PASSING = "machine-disturbed.json"  # what is not kept, so that not every run measures anew
PASSES = 600.0  # seconds that it is taken for
DTYPES = ("float32", "bfloat16")
NEWEST = "exponential"  # the quantity added last: a kept file without it is measured again
SHARE = "processor time over wall time"
LOOKS = 8  # times as many repeats where the machine's quiet is looked at: about 0.1 s
UNDISTURBED = 0.9  # of the processor, below which a measurement counts as disturbed
TAKEN = 0.2  # of the processors by other work, above which what was measured is not kept
BUSY = "measured while other work took {:.0%} of the processor"
UNKEPT = "; not kept: measure again when nothing else runs"
EARLIER = "of {}: what was measured since was disturbed ({:.0%} of the processor) and not kept"
SQUARE = 1536  # rows and columns of the matrices multiplied
SMALLEST = 256 * 2**20  # bytes read by a bandwidth probe: well past any cache of its size


def measure(
    refresh: bool = False,
    folder: Path | None = None,
    say: Callable[[str], None] = lambda text: None,
    meanwhile: AbstractContextManager[Any] | None = None,
) -> Device:
    """This machine, from the file of an earlier measurement in `folder` or measured now.

    `refresh` measures again; `meanwhile` stands around measuring, as what pauses other work. A file
    of another machine, or a damaged one, is measured over. About five seconds; other work on the
    machine lowers what is found, which `spread` shows. What was found on a busy machine says so in
    `caution`, and is measured again once the machine is quiet. Where others took over a fifth of
    the processors it is not kept: an earlier measurement stands, or this one for ten minutes.
    Where it cannot be written, the log has a line of it.
    """
    folder = own_cache() if folder is None else folder
    kept = None if refresh else known(folder) or _passing(folder)
    if kept is not None and not (kept.caution and _quiet()):
        return kept
    with meanwhile or nullcontext():
        found = probe(say)
    file = FILE
    if found.disturbed > TAKEN:
        earlier = known(folder)
        if earlier is not None and not earlier.caution:
            caution = EARLIER.format(earlier.measured, found.disturbed)
            return earlier.model_copy(update={"caution": caution, "disturbed": found.disturbed})
        file, found = PASSING, found.model_copy(update={"caution": found.caution + UNKEPT})
    try:
        _keep(found, folder / file)
    except BadInput as fault:  # found all the same: only the next run must measure again
        logging.getLogger(__name__).warning("%s", fault)
    return found


def known(folder: Path | None = None) -> Device | None:
    """This machine as measured before; None where that has not been done. Measures nothing."""
    kept = _kept((own_cache() if folder is None else folder) / FILE)
    return kept if kept is not None and _is_this(kept) and kept.disturbed <= TAKEN else None


def _passing(folder: Path) -> Device | None:
    """What was measured here a short while ago on a machine that others kept busy."""
    try:
        age = time.time() - (folder / PASSING).stat().st_mtime
    except OSError:
        return None
    # Of a clock that was set back, what is to come is no short while ago either.
    kept = _kept(folder / PASSING) if abs(age) < PASSES else None
    return kept if kept is not None and _is_this(kept) else None


def _is_this(kept: Device) -> bool:
    """This machine as today's probes tell: a caution says how much was taken, too."""
    told = not kept.caution or kept.disturbed > 0
    return kept.name == _name() and NEWEST in kept.spread and told


def known_roofs(threads: int = 0, folder: Path | None = None) -> list[Roof]:
    """This machine's roofs for so many threads (0: all); none where it is not measured yet.

    For a run's header: whoever runs work must not spend its time on measuring.
    """
    machine = known(folder)
    return [] if machine is None else roofs_of(machine, threads)


def probe(say: Callable[[str], None] = lambda text: None, repeats: int = 7) -> Device:
    """Measure this machine now, `repeats` times each quantity, and keep nothing."""
    from engine.hardware import probes

    found = _quantities(say, repeats)
    (share,) = found.pop(SHARE)
    spread = {name: _spread(values) for name, values in found.items()}
    peaks = {dtype: spread[f"matmul_{dtype}"].high for dtype in DTYPES}
    peaks["float32"] = max(peaks["float32"], spread["multiply_add"].high)
    efficiency = {d: spread[f"matmul_{d}"].median / peaks[d] for d in DTYPES}
    date = time.strftime("%Y-%m-%d %H:%M")
    return Device(
        slug="this-machine",
        name=_name(),
        kind="cpu",
        grade="measured",
        caution=BUSY.format(1 - share) if share < UNDISTURBED else "",
        disturbed=min(1.0, max(0.0, 1 - share)),
        peaks=peaks,
        bandwidth=spread["read"].median,
        capacity=machine.describe()["memory"],
        caches=caches(),
        cache_bandwidth={
            level: spread[f"read_{level}"].high for level in caches() if f"read_{level}" in spread
        },
        exponentials=spread[NEWEST].high,
        threads=probes.threads(),
        launch=spread["parallel_call"].median,
        efficiency=efficiency,
        sources=dict.fromkeys(("peaks", "bandwidth", "launch", "efficiency"), f"measured {date}"),
        measured=date,
        spread=spread,
    )


def _quantities(say: Callable[[str], None], repeats: int) -> dict[str, list[float]]:
    """Every measured quantity: bytes per second, flops per second, or seconds a call."""
    from engine.hardware import probes

    every = probes.threads()
    size = max(SMALLEST, 4 * int(caches().get("L3", 0)))
    found: dict[str, list[float]] = {}
    say("reading memory")
    found["read_one_thread"] = probes.read_rates(size, 1, repeats)
    found["read"] = probes.read_rates(size, every, repeats)
    for level, size in working_sets(caches(), every).items():
        say(f"reading {level}")
        found[f"read_{level}_one_thread"] = probes.level_rates(size, 1, repeats)
        found[f"read_{level}"] = probes.level_rates(size, every, repeats)
    say("copying memory")
    found["copy_one_thread"] = probes.copy_rates(size, 1, repeats)
    found["copy"] = probes.copy_rates(size, every, repeats)
    say("multiplying in registers")
    found["multiply_add_one_thread"] = probes.multiply_add_rates(1, repeats)
    rates, share = _watched(lambda: probes.multiply_add_rates(every, LOOKS * repeats), every)
    found["multiply_add"], found[SHARE] = rates[:repeats], [share]
    for dtype in DTYPES:
        say(f"multiplying {dtype} matrices")
        found[f"matmul_{dtype}"] = probes.matmul_rates(dtype, SQUARE, repeats)
    say("taking exponentials")
    found[NEWEST] = probes.exponential_rates(repeats)
    say("starting kernels")
    return found | probes.call_times(repeats)


def _watched(call: Callable[[], list[float]], threads: int) -> tuple[list[float], float]:
    """What `call` gives, and the share of `threads` processors that this process had meanwhile."""
    wall, own = time.perf_counter(), time.process_time()
    rates = call()
    return rates, (time.process_time() - own) / (time.perf_counter() - wall) / threads


def _quiet() -> bool:
    """Whether little else runs just now."""
    if not hasattr(os, "getloadavg"):
        return False
    return os.getloadavg()[0] < 0.3 * (os.cpu_count() or 1)


def working_sets(sizes: Mapping[str, float], threads: int) -> dict[str, int]:
    """Bytes a thread reads to be served by each level: what fills half of it.

    The last level is shared by all threads. A level that half of which would not leave the one
    before it, four times over, cannot be told from it and is left out.
    """
    found: dict[str, int] = {}
    inner = 0
    for level in sorted(sizes):
        size = int(sizes[level])
        wanted = size // 2 // (threads if level == "L3" else 1)
        if wanted >= 4 * inner:
            found[level] = wanted
        inner = size
    return found


def _spread(values: list[float]) -> Spread:
    return Spread(
        low=min(values), median=statistics.median(values), high=max(values), count=len(values)
    )


def _name() -> str:
    facts = machine.describe()
    return f"{facts['processor']}, {facts['cores']} cores"


def caches(root: Path = Path("/sys/devices/system/cpu/cpu0/cache")) -> dict[str, float]:
    """Bytes of data cache by level as the system tells; empty where it does not."""
    found: dict[str, float] = {}
    for entry in sorted(root.glob("index*")):
        try:
            kind, level, size = (
                (entry / name).read_text().strip() for name in ("type", "level", "size")
            )
        except OSError:
            continue
        if kind in ("Data", "Unified") and size.endswith("K") and size[:-1].isdigit():
            found[f"L{level}"] = int(size[:-1]) * 1024.0
    return found


def _kept(path: Path) -> Device | None:
    """The device in the file; None where there is none that can be used."""
    try:
        return Device.model_validate_json(read_text(path))
    except (OSError, BadInput, ValidationError, UnicodeDecodeError):
        return None


def _keep(found: Device, path: Path) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_text(path, json.dumps(found.model_dump(), indent=1), "the measurement")
    except OSError as fault:
        raise BadInput(
            f"{path.parent}: cannot keep the measurement ({fault.strerror}); choose another folder"
        ) from None
