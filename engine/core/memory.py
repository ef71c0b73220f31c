"""Whether this machine has the memory that is about to be taken, asked before it stalls."""

from pathlib import Path

from engine.core.errors import BadInput

MEMINFO = Path("/proc/meminfo")
GIB = 2**30


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
