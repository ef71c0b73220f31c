"""Memory and time of one training step: streamed in pieces, checkpointed, and as it is."""

from collections.abc import Callable
from statistics import median
from typing import Any

from engine.core.config import update
from engine.core.events import Level
from engine.core.run import Run
from engine.training.streamed.config import StreamedConfig
from engine.training.streamed.run import PEAK, SECONDS
from engine.training.streamed.run import run as drive

NAME = "streamed"
ABOUT = "activation bytes and seconds of a training step, streamed beside checkpointing and plain"
SHAPE = {"hidden": 128, "layers": 4, "heads": 4, "kv_heads": 1, "width": 384, "vocabulary": 2048,
         "batch": 1, "sweep": "nothing", "exact": False}  # fmt: skip


def run(full: bool, say: Callable[[str], None]) -> list[dict[str, Any]]:
    """One row for each length; each way is timed in turns within it."""
    found = []
    for tokens in (2048, 4096, 8192, 16384) if full else (1024, 2048):
        say(f"{tokens} tokens")
        config = update(StreamedConfig(), {**SHAPE, "tokens": tokens, "rounds": 5 if full else 3})
        log = Run.execute(drive, config).log
        levels: dict[tuple[str, str], list[float]] = {}
        for e in log.of(Level):
            levels.setdefault((e.lane, e.name), []).append(e.value)
        row: dict[str, Any] = {"tokens": tokens}
        for way in ("plain", "checkpointing", "streamed"):
            row[way] = {"bytes": levels[way, PEAK][0], "seconds": median(levels[way, SECONDS])}
        found.append(row)
    return found


def table(rows: list[dict[str, Any]]) -> list[tuple[str, ...]]:
    """Head and rows: megabytes and seconds of each way, ratios to checkpointing."""
    head = ("tokens", "plain", "checkpointing", "streamed", "of checkpointing", "time of it")
    return [head, *(_cells(row) for row in rows)]


def _cells(row: dict[str, Any]) -> tuple[str, ...]:
    ways = [row[way] for way in ("plain", "checkpointing", "streamed")]
    shown = [f"{way['bytes'] / 1e6:.0f} MB, {way['seconds']:.2f} s" for way in ways]
    memory, time = (ways[2][name] / ways[1][name] for name in ("bytes", "seconds"))
    return (f"{row['tokens']:,}", *shown, f"{memory:.2f}×", f"{time:.2f}×")
