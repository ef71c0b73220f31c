"""A backend of vectors: where numbers lie and what assigns out = α·x or out = x + β·y to them.

A file of `backends` that has a `BACKEND` is one, found by file name; the highest rank that works on
this machine is picked. Arrays are float64 throughout, as in STREAM (McCalpin).
"""

import importlib
import pkgutil
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from engine.core.errors import BadInput

ALIGNED = 64  # bytes: a cache line, and the widest vector register


def _works() -> str:
    return ""


@dataclass(frozen=True)
class Backend:
    """`scaled(out, x, α)` assigns α·x, `summed(out, x, y, β)` assigns x + β·y; both return nothing.

    `place` takes a numpy vector to where the backend works and `fetch` back; on the processor both
    share its memory. `missing()`: "" or why it does not work here. `streams`: its stores pass by
    the caches, so that no line is read before it is written. `ready` waits until work is done.
    """

    name: str
    about: str
    scaled: Callable[[Any, Any, float], object]
    summed: Callable[[Any, Any, Any, float], object]
    rank: int
    place: Callable[[np.ndarray], Any] = lambda x_N: x_N
    fetch: Callable[[Any], np.ndarray] = lambda x_N: x_N
    missing: Callable[[], str] = _works
    ready: Callable[[], object] = lambda: None
    streams: bool = False
    interpreted: bool = False  # runs on the processor through an interpreter only: never timed


@cache
def backends() -> dict[str, Backend]:
    """Every backend by name, best first."""
    package = "engine.kernels.experiments.stream.backends"
    root = importlib.import_module(package)
    found = []
    for module in pkgutil.iter_modules(root.__path__):
        try:
            made = getattr(importlib.import_module(f"{package}.{module.name}"), "BACKEND", None)
        except ModuleNotFoundError as fault:
            if (fault.name or "").split(".")[0] == "engine":
                raise
            continue  # an optional package is not installed: no such backend here
        if made is not None:
            found.append(made)
    return {b.name: b for b in sorted(found, key=lambda b: (-b.rank, b.name))}


def pick(name: str = "") -> Backend:
    """The best backend that works here, or the one of that name. Raises BadInput."""
    known = backends()
    if not name:
        return next(b for b in known.values() if not b.missing() and not b.interpreted)
    if name not in known:
        raise BadInput(f"backend {name!r}: no such backend; one of: {', '.join(known)}")
    why = known[name].missing()
    if why:
        raise BadInput(f"backend {name!r}: {why}; choose another")
    return known[name]


def empty(count: int) -> np.ndarray:
    """An uninitialised float64 vector that begins on a cache line."""
    raw = np.empty(count * 8 + ALIGNED, np.uint8)
    skip = -raw.ctypes.data % ALIGNED
    return raw[skip : skip + count * 8].view(np.float64)
