"""What the scheduler and the page allocator cost a step, without any model under them."""

from collections.abc import Callable
from time import perf_counter
from typing import Any

import numpy as np

from engine.core.clock import VirtualClock
from engine.core.events import AnyEvent
from engine.inference.config import InferenceConfig
from engine.inference.engine import Engine
from engine.inference.executors.executor import Facts
from engine.inference.requests.request import Request, sampling
from engine.inference.requests.step import Result, Step

NAME = "scheduler"
ABOUT = "scheduler and allocator at 1 to 256 running requests, in microseconds a step"
LIMIT = 50.0  # microseconds, at 256 running requests
VOCAB = 32_000


class Nothing:
    """An executor that costs nothing: the same tokens every time."""

    def __init__(self) -> None:
        self.facts = Facts("nothing", "none", VOCAB, 1 << 20, 1, 1, 1.0, (0,))
        self.tokens = np.random.default_rng(0).integers(1, VOCAB, 1 << 16).astype(np.int32)
        self.zeros = np.zeros(1 << 16, np.float32)
        self.at = 0

    def execute(self, step: Step) -> Result:
        count = len(step.sample_rows_S)
        self.at = (self.at + 257) % 4096
        return Result(self.tokens[self.at : self.at + count], self.zeros[:count], 1e-3)


def run(full: bool, say: Callable[[str], None]) -> list[dict[str, Any]]:
    """One row for each number of running requests, with pages to spare and with the cache full."""
    cases = [(1, False), (16, False), (64, False), (256, False), (256, True)]
    if full:
        cases += [(1024, False), (1024, True)]
    rows = []
    for running, crowded in cases:
        say(f"{running} running requests{', the cache full of old prefixes' if crowded else ''}")
        rows.append(_measure(running, crowded, 2000 if full else 600))
    return rows


def table(rows: list[dict[str, Any]]) -> list[tuple[str, ...]]:
    """Head and rows: microseconds a step, median unless said."""
    head = ("running", "schedule + allocate", "mean", "p99", "limit", "events", "pages taken")
    return [head, *(_cells(row) for row in rows)]


def _cells(row: dict[str, Any]) -> tuple[str, ...]:
    limit = f"{LIMIT:.0f} µs" if row["name"] == "running-256" else ""
    shown = (f"{row[key]:.1f} µs" for key in ("microseconds", "mean", "p99"))
    return (row["name"], *shown, limit, f"{row['events']:.1f} µs", f"{row['takes']:.1f}")


def _measure(running: int, crowded: bool, steps: int) -> dict[str, Any]:
    engine = _engine(running, crowded, steps)
    engine.hear()
    while len(engine.scheduler.prefill) or len(engine.scheduler.queue):
        engine.step()
    decide, tell, taken = np.zeros(steps), np.zeros(steps), 0
    for number in range(steps):
        free = engine.cache.available
        decide[number], tell[number] = _step(engine)
        taken += free - engine.cache.available
    name = f"running-{running}" + ("-full" if crowded else "")
    return {
        "name": name,
        "running": running,
        "microseconds": float(np.median(decide)) * 1e6,
        "mean": float(np.minimum(decide, 10 * np.median(decide)).mean()) * 1e6,
        "p99": float(np.quantile(decide, 0.99)) * 1e6,
        "events": float(np.median(tell)) * 1e6,
        "takes": taken / steps,
        "holds": running != 256 or crowded or float(np.median(decide)) * 1e6 <= LIMIT,
    }


def _step(engine: Engine) -> tuple[float, float]:
    """Seconds of deciding and of telling: `Engine.step` with a watch in it."""
    begin = perf_counter()
    start = engine.clock.now()
    with engine.clock.at(start):
        step = engine.schedule(start)
    decided = perf_counter()
    assert step is not None
    engine.number += 1
    result = engine.executor.execute(step)
    engine.clock.wait_until(start + result.seconds)
    now = engine.clock.now()
    received = perf_counter()
    with engine.clock.at(now):
        special = engine.outputs.append(step, result)
        appended = perf_counter()
        engine.outputs.tell(step, result, special, now)
        engine.tell_step(step, result, start, now)
        engine.tell_levels(now, step.decodes)
    done = perf_counter()
    return (decided - begin) + (appended - received), done - appended


def _engine(running: int, crowded: bool, steps: int) -> Engine:
    """`running` requests that all decode longer than is measured, at all phases of a page."""
    draw = np.random.default_rng(1)
    lengths = draw.integers(100, 400, running)
    pages = int((-(-(lengths + steps + 64) // 16)).sum())
    old = pages if crowded else 0
    config = InferenceConfig(
        pages=pages, max_running=running, step_tokens=8192, batching="decode_first"
    )
    events: list[AnyEvent] = []
    engine = Engine(config, Nothing(), VirtualClock(), events.append)
    if old:
        for _ in range(pages // 32):
            prompt = draw.integers(1, VOCAB, 513).astype(np.int32)
            engine.add(Request(prompt, sampling(max_tokens=1)))
        engine.run()
    for length in lengths:
        prompt = draw.integers(1, VOCAB, length).astype(np.int32)
        engine.add(Request(prompt, sampling(max_tokens=steps + 64, ignore_eos=True)))
    return engine
