"""The driver of decode attention runs: plan a batch, compute or model it, and sweep its context.

Spans in a lane a worker are the items and merges of the chosen split at the full context; the
curves are the makespans of every split at halved contexts, taken in turns.
"""

import time
from collections.abc import Callable
from typing import Any, Literal, cast

import numpy as np
from pydantic import model_validator

from engine.core.clock import Clock
from engine.core.config import Choice, Config, from_dict, kinds, knob
from engine.core.events import Level, Span
from engine.core.interleaved import Interleaved, measure
from engine.core.log import Log
from engine.core.plot import Plot
from engine.core.run import Live
from engine.core.tags import tag
from engine.kernels.paged_attention.decode_cpu import CLOCK
from engine.kernels.paged_attention.executors.real import Real
from engine.kernels.paged_attention.plan import Batch, Plan
from engine.kernels.paged_attention.policies.lean import Lean
from engine.kernels.paged_attention.split import Split
from engine.kernels.paged_attention.workers import Shape, Times, Workers, lane

BYTES = {"float32": 4, "bfloat16": 2, "float16": 2}
CONTEXT = "longest context (tokens)"
TIMES = Plot("time of a step", CONTEXT, "time of a step (s)", log_x=True, log_y=True)
RATIO = Plot("against one worker a head", CONTEXT, "speed-up (×)", log_x=True, zero=False)


class DecodeConfig(Config):
    """One decode step of a batch of sequences of unequal lengths."""

    split: Choice[Split] = knob(Lean(), "where the keys of a head are cut")
    workers: Choice[Workers] = knob(Real(), "who computes: threads here, or a modelled device")
    batch: int = knob(8, "sequences", low=1, high=256)
    context: int = knob(
        16384, "tokens of the longest sequence", low=64, high=1 << 20, unit="tokens", log=True
    )
    others: float = knob(
        0.0625, "length of the other sequences, as a part of the longest", low=0.001, high=1.0
    )
    heads: int = knob(8, "query heads", low=1, high=256)
    kv_heads: int = knob(1, "key/value heads; query heads share them evenly", low=1, high=256)
    dim: int = knob(64, "numbers of a head", low=1, high=256)
    dtype: Literal["float32", "bfloat16", "float16"] = knob(
        "float32", "numbers of the cache", group="more", called="Number format"
    )
    tile: int = knob(256, "keys that are never cut", low=16, high=4096, unit="tokens", group="more")
    rescale: bool = knob(
        True, "merge partial results by their log-sum-exps; off: a plain mean, wrong", group="more"
    )
    points: int = knob(3, "context lengths of the sweep, each half the next", low=1, high=12)
    rounds: int = knob(5, "repeats; the fastest is shown", low=1, high=100, group="more")

    @model_validator(mode="after")
    def _heads_share_evenly(self) -> "DecodeConfig":
        if self.heads % self.kv_heads:
            raise ValueError(f"heads: {self.heads} query heads cannot share {self.kv_heads} evenly")
        return self

    def shape(self) -> Shape:
        """The step's shape."""
        return Shape(self.heads, self.kv_heads, self.dim, self.dtype, BYTES[self.dtype])

    def contexts(self, longest: int) -> list[int]:
        """Lengths of the sequences where the longest has that many tokens."""
        other = max(1, round(longest * self.others))
        return [longest] + [other] * (self.batch - 1)

    def plan(self, split: Split, longest: int) -> Plan:
        """The step's items, one key/value head a stream."""
        contexts = np.array(self.contexts(longest), np.int64)
        return split.plan(Batch(contexts, self.kv_heads, self.tile), self.workers.number())


def run(config: DecodeConfig, live: Live) -> None:
    """Compute or model the step of `config`, then the sweep; `live` is where events go."""
    clock, workers, shape = config.workers.clock(), config.workers, config.shape()
    live.report("making keys and values", 0, 0)
    given = workers.arguments(config.contexts(config.context), shape, live.seed)
    made = config.plan(config.split, config.context)
    facts = workers.facts()
    live.open(
        config,
        clock,
        plots=[TIMES, RATIO],
        question="Who reads a long cache fastest?",
        lanes=[lane(worker) for worker in range(workers.number())],
        workers=workers.number(),
        items=len(made.row_I),
        **facts,
    )
    begun = clock.now()
    tried = []
    for turn in range(config.rounds if clock.name == "wall" else 1):
        live.poll(clock.now())
        live.report("computing the step", turn, config.rounds)
        tried.append(workers.work(made, shape, given, config.rescale))
    best = min(tried, key=lambda times: times.makespan)
    _tell(config, made, best, begun, clock, live, facts)
    error = workers.error(made, given, config.rescale)
    if error is not None:
        live.emit(Level(clock.now(), "check", "error", error))
    _sweep(config, clock, live)


def _tell(
    config: DecodeConfig, made: Plan, times: Times, begun: float, clock: Clock, live: Live,
    facts: dict[str, Any],
) -> None:  # fmt: skip
    """Emit the step's spans: its items and merges, and the whole as one operation."""
    # Stamps are of the system's clock; under the virtual one the step begins now.
    real = clock.name == "wall"
    since = time.clock_gettime(CLOCK) - clock.now() if real and CLOCK >= 0 else -begun
    shape, grade, device = config.shape(), facts["grade"], facts["device"]
    bytes_I = (made.end_I - made.begin_I) * shape.key_bytes
    spans = []
    for item, (start, stop) in enumerate((times.item_I2 - since).tolist()):
        said = tag(
            task=f"s{made.row_I[item]}-h{made.head_I[item]}", tiles=int(made.tiles_I[item]),
            keys=f"{made.begin_I[item]}-{made.end_I[item]}", grade=grade,
        )  # fmt: skip
        where = lane(int(times.worker_I[item]))
        spans.append(Span(stop, where, "attend", start, 0.0, float(bytes_I[item]), said))
    for merge, (start, stop) in enumerate((times.merge_M2 - since).tolist()):
        first, last = made.parts_M2[merge].tolist()
        said = tag(
            task=f"s{made.row_M[merge]}-h{made.head_M[merge]}", parts=last - first, grade=grade
        )
        size = float((last - first + 1) * shape.part_bytes)
        where = lane(int(times.merger_M[merge]))
        spans.append(Span(stop, where, "merge", start, 0.0, size, said))
    spans.sort(key=lambda span: span.time)
    for span in spans:
        live.emit(span)
    start, stop = min(span.start for span in spans), spans[-1].time
    clock.wait_until(stop)
    keys = int((made.end_I - made.begin_I).sum())
    merged = int((made.parts_M2[:, 1] - made.parts_M2[:, 0]).sum())
    said = tag(
        phase="decode", dtype=config.dtype, variant=config.split.kind, grade=grade, device=device,
        shape=f"{config.batch}x{config.heads}/{config.kv_heads}x{config.dim}@{config.context}",
    )  # fmt: skip
    size = keys * shape.key_bytes + 2.0 * merged * shape.part_bytes
    live.emit(
        Span(stop, "paged_attention", config.split.kind, start, keys * shape.key_flops, size, said)
    )


def splits(config: DecodeConfig) -> dict[str, Split]:
    """Every split by its kind; the chosen one as it is set."""
    found = {kind: from_dict(made, {}) for kind, made in kinds(Split).items()}
    return {**cast(dict[str, Split], found), config.split.kind: config.split}


def _sweep(config: DecodeConfig, clock: Clock, live: Live) -> None:
    """Makespans of every split at rising contexts; the rounds of the splits take turns."""
    shape, workers, chosen = config.shape(), config.workers, splits(config)

    def at(longest: int) -> dict[str, Callable[[], float]]:
        given = workers.arguments(config.contexts(longest), shape, live.seed)

        def makespan_of(plan: Plan) -> Callable[[], float]:
            return lambda: workers.work(plan, shape, given, config.rescale).makespan

        return {kind: makespan_of(config.plan(split, longest)) for kind, split in chosen.items()}

    rounds = config.rounds if clock.name == "wall" else 1
    halved = (config.context >> back for back in range(config.points - 1, -1, -1))
    over_contexts = Interleaved(
        "sweeping the context",
        [longest for longest in halved if longest >= 1],
        at,
        {
            TIMES: lambda _, kind, found: [min(found[kind])],
            RATIO: lambda _, kind, found: [min(found["per_head"]) / min(found[kind])],
        },
        rounds=lambda _: rounds,
    )
    measure(over_contexts, clock, live)


def makespan(log: Log) -> float:
    """Seconds of the step: from the first item's begin to the last item's or merge's end."""
    spans = [span for span in log.of(Span) if span.name in ("attend", "merge")]
    return max(span.time for span in spans) - min(span.start for span in spans)
