"""STREAM's four operations through the one interface, beside the native loop."""

from collections.abc import Callable, Iterable
from statistics import median
from typing import Any

from engine.core.log import Log
from engine.core.run import Run
from engine.hardware.measure import probe
from engine.kernels.experiments.stream.config import StreamConfig
from engine.kernels.experiments.stream.operations import OPERATIONS
from engine.kernels.experiments.stream.run import run
from workbench.studies.hardware.stream_cpp import gains, times

LENGTH = 2**24
REPEATS, MANY = 10, 40


def rows(full: bool, say: Callable[[str], None]) -> list[dict[str, Any]]:
    """A row for each operation: picked backend, its time, memory's limit, C beside."""
    spread = probe(say, 7).spread
    config = StreamConfig(length=LENGTH, repeats=MANY if full else REPEATS)
    log = Run.execute(run, config).log
    assert log.opened is not None
    ours, theirs = log.opened.facts["backend"], log.opened.facts["native"]
    taken, found = times(log, ours), gains(log, ours, theirs)
    limit = max(spread["read"].high, spread["copy"].high, highest(log, (ours, theirs)))
    return [
        {
            "name": f"stream {op.name}",
            "what": f"{ours}, {op.counted * LENGTH / median(taken[op.name]) / 1e9:.1f} GB/s by "
            "STREAM's count; limit: those bytes at the highest rate anything here read, copied or "
            "streamed",
            "seconds": median(taken[op.name]),
            "limit_seconds": op.counted * LENGTH / limit,
            "fraction_of_limit": op.counted * LENGTH / limit / median(taken[op.name]),
            "ratio": found[op.name],
            "ratio_to": theirs,
            "holds_to": "≥ 1×",
        }
        for op in OPERATIONS
    ]


def highest(log: Log, backends: Iterable[str]) -> float:
    """Bytes per second of the quickest repetition of any operation, by STREAM's count.

    A machine takes reads and streamed writes side by side, more bytes than of either alone, and a
    copy through its caches also reads what it writes: probes of those are no limit for these.
    """
    return max(
        op.counted * LENGTH / min(times(log, backend)[op.name])
        for backend in backends
        for op in OPERATIONS
    )
