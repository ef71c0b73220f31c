"""Whether weights fit this machine, asked before they are made rather than after it stalls."""

from pathlib import Path

from engine.core.errors import BadInput

MEMINFO = Path("/proc/meminfo")


def require_memory(needed: float, what: str) -> None:
    """Raises BadInput where `needed` bytes are more than this machine has left (where it says)."""
    free = available()
    if free is not None and needed > free:
        raise BadInput(
            f"{what}: weights take {needed / 1e9:.1f} GB and this machine has {free / 1e9:.1f} GB "
            "left; take a smaller model or a narrower dtype, or the modelled executor"
        )


def available() -> int | None:
    """Bytes new memory can take without swapping, or None where the system does not say."""
    if not MEMINFO.exists():
        return None
    for line in MEMINFO.read_text(encoding="ascii").splitlines():
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) * 1024
    return None
