"""Memory of this machine: whether it has what is about to be taken, the error where it had not, and
arrays that take it page by page, when something is first written."""

import errno
import mmap
import os
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from engine.core.errors import BadInput

MEMINFO = Path("/proc/meminfo")
GIB = 2**30
NO_ROOM = "failed to map segment from shared object"  # the C library's words
LARGE = 1 << 16  # bytes of an array from which on pages of the system are worth the call


class OutOfMemory(BadInput):
    """Memory was refused while work went on: what was under way is lost, nothing else."""


def refused(fault: BaseException) -> bool:
    """Whether memory was refused, in Python's or numpy's words, in torch's or the system's."""
    torchs = isinstance(fault, RuntimeError) and (
        "out of memory" in str(fault) or "can't allocate memory" in str(fault)
    )
    systems = isinstance(fault, OSError) and fault.errno == errno.ENOMEM
    return isinstance(fault, MemoryError) or torchs or systems or _not_loaded(fault)


def _not_loaded(fault: BaseException) -> bool:
    """Whether a library of compiled code found no room (`ulimit -v`), which some tell as a file
    that is not there."""
    seen: BaseException | None = fault
    while isinstance(seen, OSError | ImportError):
        if NO_ROOM in str(seen):
            return True
        seen = seen.__context__
    return False


def out_of_memory(fault: BaseException) -> OutOfMemory:
    """The one line for it."""
    if _not_loaded(fault):
        return OutOfMemory(
            "out of memory: a library found no room to be loaded; this process may take too "
            "little (`ulimit -v`): raise its limit"
        )
    said = " ".join(str(fault).split())[:120]
    return OutOfMemory(
        f"out of memory{f' ({said})' if said else ''}: ask for less at once, or take a smaller "
        "model, fewer pages or a narrower dtype"
    )


def line(fault: BaseException) -> str:
    """What to say of any fault, in one line."""
    if refused(fault):
        return str(out_of_memory(fault))
    return str(fault) if isinstance(fault, BadInput) else f"{type(fault).__name__}: {fault}"


def require(needed: float, what: str, advice: str) -> None:
    """Raises BadInput where `needed` bytes are more than this machine has left (where it says)."""
    free = available()
    if free is not None and needed > free:
        raise BadInput(
            f"{what}: takes {needed / GIB:,.1f} GiB and this machine has {free / GIB:.1f} GiB "
            f"left; {advice}"
        )


def available() -> int | None:
    """Bytes new memory can take without swapping, or None where the system does not say."""
    if not MEMINFO.exists():
        return None
    for line in MEMINFO.read_text(encoding="ascii").splitlines():
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) * 1024
    return None


def demand_zeros(shape: int | tuple[int, ...], dtype: Any) -> np.ndarray:
    """Zeros of a shape, of which only those pages of memory are held that something was written to.

    numpy's own are that only where the allocator asks the system anew: what a process has freed
    before is cleared, and so held, as a whole.
    """
    sizes = (shape,) if isinstance(shape, int) else shape
    size = prod(sizes) * np.dtype(dtype).itemsize
    if size < LARGE:
        return np.zeros(sizes, dtype)
    private = {"flags": mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS} if os.name == "posix" else {}
    return np.frombuffer(mmap.mmap(-1, size, **private), dtype).reshape(sizes)
