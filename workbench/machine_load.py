"""`MachineLoad`: how busy other programs keep this machine, as far as the system tells.

Around a piece of work stands `MachineLoad`; afterwards it says the share of all processors that
others had meanwhile.
"""

import os
import time
from pathlib import Path

STAT = Path("/proc/stat")
IDLE = (3, 4)  # columns of the processors' line: idle, and idle while a disk works


class MachineLoad:
    """`with MachineLoad() as other:` … then `other.share`, 0 to 1; 0 where nothing tells."""

    def __init__(self, stat: Path = STAT) -> None:
        self.stat, self.share = stat, 0.0

    def __enter__(self) -> "MachineLoad":
        self._before, self._own = _ticks(self.stat), time.process_time()
        return self

    def __exit__(self, *_: object) -> None:
        after, own = _ticks(self.stat), time.process_time() - self._own
        if self._before is None or after is None:
            return
        busy, whole = (now - then for now, then in zip(after, self._before, strict=True))
        if whole > 0:
            self.share = min(1.0, max(0.0, (busy - own * os.sysconf("SC_CLK_TCK")) / whole))


def _ticks(stat: Path) -> tuple[int, int] | None:
    """Busy and all ticks of all processors since the start; None where they cannot be read."""
    try:
        columns = [int(word) for word in stat.read_text().split("\n", 1)[0].split()[1:9]]
    except (OSError, ValueError):
        return None
    return sum(columns) - sum(columns[place] for place in IDLE if place < len(columns)), sum(
        columns
    )
