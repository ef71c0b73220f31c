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
LIMIT = 50.0  # microseconds, at 256 running requests …
SPECULATING = 80.0  # … and at 64 that each verify four drafts
VOCAB = 32_000


class Nothing:
    """An executor that costs nothing: the same tokens every time."""

    def __init__(self, words: int = VOCAB, drafts: bool = False) -> None:
        self.drafts = drafts
        self.facts = Facts("nothing", "none", VOCAB, 1 << 20, 1, 1, 1.0, (0,))
        # Few enough that looking up finds something, and that some of what it finds holds.
        tokens = np.random.default_rng(0).integers(1, words, 1 << 16)
        self.tokens = tokens.astype(np.int32)
        self.zeros = np.zeros(1 << 16, np.float32)
        self.at = 0

    def execute(self, step: Step) -> Result:
        count = len(step.sample_rows_S)
        self.at = (self.at + 257) % 4096
        tokens_S = self.tokens[self.at : self.at + count]
        if self.drafts and step.drafts_B is not None:  # of a model: three in four are right
            right_S = np.arange(count) % 4 > 0
            step.rows.tokens[step.sample_rows_S, step.known_S] = np.where(right_S, tokens_S, 0)
        return Result(tokens_S, self.zeros[:count], 1e-3)


def run(full: bool, say: Callable[[str], None]) -> list[dict[str, Any]]:
    """One row for each number of running requests, with pages to spare and with the cache full."""
    cases = [(1, False), (16, False), (64, False), (256, False), (256, True)]
    if full:
        cases += [(1024, False), (1024, True)]
    rows, steps = [], 2000 if full else 600
    for running, crowded in cases:
        say(f"{running} running requests{', the cache full of old prefixes' if crowded else ''}")
        rows.append(_measure(running, crowded, steps))
    for kind in ("ngram", "draft_model"):
        say(f"64 running requests that verify drafts ({kind})")
        rows.append(_measure(64, False, steps, kind))
    return rows


def table(rows: list[dict[str, Any]]) -> list[tuple[str, ...]]:
    """Head and rows: microseconds a step, median unless said."""
    head = ("running", "schedule + allocate", "mean", "p99", "limit", "events", "pages taken")
    return [head, *(_cells(row) for row in rows)]


def _cells(row: dict[str, Any]) -> tuple[str, ...]:
    limit = f"{row['limit']:.0f} µs" if row["limit"] else ""
    shown = (f"{row[key]:.1f} µs" for key in ("microseconds", "mean", "p99"))
    return (row["name"], *shown, limit, f"{row['events']:.1f} µs", f"{row['takes']:.1f}")


def _measure(running: int, crowded: bool, steps: int, kind: str = "none") -> dict[str, Any]:
    engine = _engine(running, crowded, steps, kind)
    engine.hear()
    while len(engine.scheduler.prefill) or len(engine.scheduler.queue):
        engine.step()
    decide, tell, taken = np.zeros(steps), np.zeros(steps), 0
    for number in range(steps):
        free = engine.cache.available
        decide[number], tell[number] = _step(engine)
        taken += free - engine.cache.available
    drafting = kind != "none"
    name = f"running-{running}" + ("-full" if crowded else "") + (f"-{kind}" if drafting else "")
    limit = SPECULATING if drafting else LIMIT if running == 256 and not crowded else 0.0
    return {
        "name": name,
        "running": running,
        "microseconds": float(np.median(decide)) * 1e6,
        "mean": float(np.minimum(decide, 10 * np.median(decide)).mean()) * 1e6,
        "p99": float(np.quantile(decide, 0.99)) * 1e6,
        "events": float(np.median(tell)) * 1e6,
        "takes": taken / steps,
        "limit": limit,
        "holds": not limit or float(np.median(decide)) * 1e6 <= limit,
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


def _engine(running: int, crowded: bool, steps: int, kind: str) -> Engine:
    """`running` requests that all decode longer than is measured, at all phases of a page."""
    draw = np.random.default_rng(1)
    lengths = draw.integers(100, 400, running)
    if kind != "none":
        steps *= 5  # tokens, of which a step may take as many
    pages = int((-(-(lengths + steps + 64) // 16)).sum())
    old = pages if crowded else 0
    config = InferenceConfig(
        pages=pages, max_running=running, step_tokens=8192, batching="decode_first",
        speculation=kind,
    )  # fmt: skip
    events: list[AnyEvent] = []
    words = VOCAB if kind == "none" else 40
    engine = Engine(config, Nothing(words, kind == "draft_model"), VirtualClock(), events.append)
    if old:
        for _ in range(pages // 32):
            prompt = draw.integers(1, VOCAB, 513).astype(np.int32)
            engine.add(Request(prompt, sampling(max_tokens=1)))
        engine.run()
    for length in lengths:
        prompt = draw.integers(1, VOCAB, length).astype(np.int32)
        engine.add(Request(prompt, sampling(max_tokens=steps + 64, ignore_eos=True)))
    return engine
