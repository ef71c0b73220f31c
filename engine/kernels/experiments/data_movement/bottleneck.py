"""What holds a kernel back, from where its modelled time goes: a label beside the counts' class.

No threshold of the classes is used: a part of the time dominates where it is more than half. A core
issues `width` instructions a cycle and has `in_flight` misses under way, or one where each address
waits for the last; all cores share memory's bandwidth.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from engine.kernels.experiments.data_movement.caches import (
    DRAM_WRITE,
    L1_MISS,
    L2_MISS,
    L3_MISS,
    PREFETCHED,
    Misses,
)
from engine.kernels.experiments.data_movement.facts import facts
from engine.kernels.experiments.data_movement.kernels import Trace


@dataclass(frozen=True)
class Spent:
    """Seconds of the slowest core: issuing, waiting for nearer caches, waiting for memory; and what
    memory's bandwidth alone asks of all cores."""

    issue: float
    caches: float
    memory: float
    bandwidth: float

    @property
    def streams(self) -> bool:
        """Whether the bandwidth of memory, not a core, sets the time."""
        return self.bandwidth > self.issue + self.caches + self.memory

    @property
    def by_memory(self) -> bool:
        """Whether memory takes more than half of the time."""
        return self.streams or self.memory > self.issue + self.caches


def spent(trace: Trace, found: Misses, chained: bool, latency: float, bandwidth: float) -> Spent:
    """Where the time of one run goes. `latency` of memory in cycles, `bandwidth` in B/s."""
    known, core, counts = facts()["hierarchy"], facts()["core"], found.counts
    part_C = np.diff(trace.ends, prepend=0) / len(trace.stream)
    slowest = int(part_C.argmax())
    l1, l2, l3 = (float(counts[slowest, which]) for which in (L1_MISS, L2_MISS, L3_MISS))
    at_once = 1 if chained else core["in_flight"]
    near = ((l1 - l2) * known["l2_latency"] + max(l2 - l3, 0.0) * known["l3_latency"]) / at_once
    issue = float(part_C[slowest]) * trace.instructions / core["width"]
    lines = sum(found.total(which) for which in (L3_MISS, DRAM_WRITE, PREFETCHED))
    cycle = 1.0 / known["frequency"]
    return Spent(
        issue * cycle, near * cycle, l3 * latency / at_once * cycle,
        lines * known["line"] / bandwidth,
    )  # fmt: skip


def limited_by(by_cores: Sequence[Spent]) -> str:
    """The class that the times of fewest to most cores ask for.

    Where memory dominates on any number of cores: whether its traffic halves as cores bring caches
    of their own, or doubles as they share one; else whether its bandwidth is ever used up.
    """
    few, most = by_cores[0].bandwidth, by_cores[-1].bandwidth
    if any(each.by_memory for each in by_cores):
        if most < few / 2:
            return "1c"
        if most > few * 2:
            return "2a"
        return "1a" if any(each.streams for each in by_cores) else "1b"
    caches = sum(each.caches for each in by_cores)
    return "2b" if caches > sum(each.issue for each in by_cores) else "2c"
