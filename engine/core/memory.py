"""Whether this machine has the memory that is about to be taken, and the error where it had not."""

from pathlib import Path

from engine.core.errors import BadInput

MEMINFO = Path("/proc/meminfo")
GIB = 2**30


class OutOfMemory(BadInput):
    """Memory was refused while work went on: what was under way is lost, nothing else."""


def refused(fault: BaseException) -> bool:
    """Whether memory was refused, in Python's or numpy's words or in torch's own."""
    torchs = isinstance(fault, RuntimeError) and (
        "out of memory" in str(fault) or "can't allocate memory" in str(fault)
    )
    return isinstance(fault, MemoryError) or torchs


def out_of_memory(fault: BaseException) -> OutOfMemory:
    """The one line for it."""
    said = " ".join(str(fault).split())[:120]
    return OutOfMemory(
        f"out of memory{f' ({said})' if said else ''}: ask for less at once, or take a smaller "
        "model, fewer pages or a narrower dtype"
    )


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
