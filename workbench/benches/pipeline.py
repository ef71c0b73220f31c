"""How long a turned knob of a pipeline takes: plan, check, clock, events, and the schedule view.

And a step of 1F1B on two real ranks beside `torch.distributed.pipelining`'s, in turns.
"""

from collections.abc import Callable
from time import perf_counter
from typing import Any

import numpy as np

from engine.cluster.pipeline import run as drive
from engine.core.config import kinds, update
from engine.core.run import Run
from engine.training.pipeline.config import PipelineConfig
from engine.training.plan.schedule import PipelineSchedule
from widgets.views.schedule.detail import reduce
from widgets.views.schedule.fold import Schedule
from workbench.benches._pipelining import compare

NAME = "pipeline"
ABOUT = "a pipeline's knob to picture (32 ranks, 256 microbatches); real 1F1B beside torch's"
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
    say("1F1B on real ranks beside torch's")
    return [*(_row(kind, rows[1:]) for kind, rows in found.items()), compare(full)]


def table(rows: list[dict[str, Any]]) -> list[tuple[str, ...]]:
    """Head and rows: medians, slowest, limits."""
    return [("what", "median", "slowest", "limit", "of"), *(c for row in rows for c in _cells(row))]


def _cells(row: dict[str, Any]) -> list[tuple[str, ...]]:
    def shown(seconds: float) -> str:
        return f"{1e3 * seconds:.0f} ms"

    if "ratio" in row:
        theirs = (
            f"{row['ratio']:.2f} of torch's {shown(row['their_seconds'])}, {row['cpu_ratio']:.2f} "
            f"of its processor time, {row['counted_ratio']:.2f} with memory counted; {row['what']}"
        )
        limit = f"{row['limit_ratio']:.2f}"
        return [(row["name"], shown(row["seconds"]), shown(row["slowest"]), limit, theirs)]
    of = f"{row['events']:,} events"
    return [
        (f"{row['name']}: to events", shown(row["seconds"]), shown(row["slowest"]),
         shown(EVENTS_LIMIT), of),
        (f"{row['name']}: to picture", shown(row["picture"]), shown(row["slowest_picture"]),
         shown(PICTURE_LIMIT), of),
    ]  # fmt: skip


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
