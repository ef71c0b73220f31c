"""How long a turned knob of a pipeline takes: plan, check, clock, events, and the schedule view."""

from collections.abc import Callable
from time import perf_counter
from typing import Any

import numpy as np

from engine.cluster.pipeline import run as drive
from engine.core.config import kinds, update
from engine.core.run import Run
from engine.training.pipeline import PipelineConfig
from engine.training.pipeline_schedule import PipelineSchedule
from widgets.schedule.detail import reduce
from widgets.schedule.fold import Schedule

NAME = "pipeline"
ABOUT = "a pipeline step of 32 ranks and 256 microbatches from config to picture, in milliseconds"
RANKS, MICROBATCHES = 32, 256
EVENTS_LIMIT, PICTURE_LIMIT = 0.2, 0.5  # seconds


def run(full: bool, say: Callable[[str], None]) -> list[dict[str, Any]]:
    """One row for each schedule; the rounds take turns."""
    found = {kind: list[tuple[float, float, int]]() for kind in kinds(PipelineSchedule)}
    del found["as_written"]
    for turn in range(20 if full else 6):
        say(f"round {turn + 1}")
        for kind, rows in found.items():
            rows.append(_once(kind))
    return [_row(kind, rows[1:]) for kind, rows in found.items()]


def table(rows: list[dict[str, Any]]) -> list[tuple[str, ...]]:
    """Head and rows: medians, slowest, limits."""
    head = ("schedule", "events", "to events", "slowest", "limit", "to picture", "slowest", "limit")
    return [head, *(_cells(row) for row in rows)]


def _cells(row: dict[str, Any]) -> tuple[str, ...]:
    def shown(name: str) -> str:
        return f"{1e3 * row[name]:.0f} ms"

    return (
        row["name"], f"{row['events']:,}", shown("seconds"), shown("slowest"), "200 ms",
        shown("picture"), shown("slowest_picture"), "500 ms",
    )  # fmt: skip


def _once(kind: str) -> tuple[float, float, int]:
    """(seconds to all events, seconds to what the browser is sent, events)."""
    changes = {"schedule": kind, "ranks": RANKS, "microbatches": MICROBATCHES}
    begun = perf_counter()
    log = Run.execute(drive, update(PipelineConfig(), changes)).log
    emitted = perf_counter()
    fold = Schedule()
    for event in log:
        fold.add(event)
    reduce(fold.frame(), {})
    return emitted - begun, perf_counter() - begun, len(log)


def _row(kind: str, rounds: list[tuple[float, float, int]]) -> dict[str, Any]:
    events, picture, counts = np.array(rounds).T
    return {
        "name": kind,
        "events": int(counts[0]),
        "seconds": float(np.median(events)),
        "slowest": float(events.max()),
        "limit_seconds": EVENTS_LIMIT,
        "picture": float(np.median(picture)),
        "slowest_picture": float(picture.max()),
        "picture_limit_seconds": PICTURE_LIMIT,
    }
