"""The driver of STREAM: results compared first, then every backend timed in turns."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

import numpy as np

from engine.core.clock import WallClock
from engine.core.events import Level, Mark, Span
from engine.core.interleaved import Interleaved, measure
from engine.core.memory import require
from engine.core.plot import Plot
from engine.core.run import Live
from engine.core.tags import tag
from engine.hardware.measure import known_roofs
from engine.kernels.experiments.stream.backend import Backend, backends, empty, pick
from engine.kernels.experiments.stream.backends.streaming_stores import THROUGH
from engine.kernels.experiments.stream.config import StreamConfig
from engine.kernels.experiments.stream.native import C_LOOP, C_PAST, native, native_past
from engine.kernels.experiments.stream.operations import OPERATIONS, Operation
from engine.kernels.experiments.stream.vectors import Vector

COMPARED = 1003  # numbers: odd, past one grain of every backend
LARGEST = 2**20  # of the whole numbers compared: all sums and products are exact
LENGTHS = [4096 * 4**n for n in range(9)]  # of vectors that the triad is swept over
WRONG = "wrong numbers"
RATE = "bandwidth (B/s)"
SWEEP = Plot("triad over length", "numbers in a vector", RATE, log_x=True, log_y=True)
OVER_TIME = {op.name: Plot(op.name, "repetition", RATE) for op in OPERATIONS}


def run(config: StreamConfig, live: Live) -> None:
    """Compare all backends' numbers, then time STREAM's operations on each."""
    clock = WallClock()
    chosen = pick(config.backend)
    require(4 * 8 * config.length, f"vectors of {config.length:,} numbers", "take shorter ones")
    live.open(
        config, clock, plots=[*OVER_TIME.values(), SWEEP],
        question="How many bytes a second does each backend move?", backend=chosen.name,
        native=native().name, native_past=native_past().name,
        roofs=known_roofs(),
    )  # fmt: skip
    for backend in [*backends().values(), C_LOOP, C_PAST]:
        why = backend.missing() or (
            "no GPU here: compared, not timed" if backend.interpreted else ""
        )
        if why:
            live.emit(Mark(clock.now(), backend.name, "absent", f"{backend.name}: {why}"))
        if not backend.missing():
            wrong = float(compare(backend, config.factor, config.seed, config.short))
            live.emit(Level(clock.now(), backend.name, WRONG, wrong))
    _Timing(config, live, clock, chosen).all()


def compare(backend: Backend, factor: float, seed: int, short: bool = False) -> int:
    """How many numbers of the four operations are not bit for bit what numpy's expression gives.

    `short`: the last number of each vector is left out.
    """
    draw = np.random.default_rng(seed)
    wrong = 0
    for op in OPERATIONS:
        values = [draw.integers(0, LARGEST, COMPARED).astype(np.float64) for _ in range(3)]
        a, b, c = values
        truth = {"copy": a, "scale": factor * c, "add": a + b, "triad": b + factor * c}[op.name]
        placed = []
        for x in values:
            placed.append(empty(COMPARED))
            placed[-1][:] = x
        vectors = [Vector(backend, x[: COMPARED - short]) for x in placed]
        op.run(vectors[0], vectors[1], vectors[2], factor)
        out = {"copy": 2, "scale": 1, "add": 2, "triad": 0}[op.name]
        placed[out][: COMPARED - short] = vectors[out].numbers()
        wrong += int((placed[out] != truth).sum())
    return wrong


def candidates(chosen: Backend, through: bool = False) -> list[Backend]:
    """The chosen backend, the native loops, and others that work here; `through`: a wrong store."""
    others = [b for b in backends().values() if not b.missing() and not b.interpreted]
    found = {b.name: b for b in (chosen, native(), native_past(), *others)}
    if through:
        found[THROUGH.name] = THROUGH
    return list(found.values())


def seconds(op: Operation, vectors: list[Vector], factor: float) -> float:
    """One timed call, its work done."""
    start = time.perf_counter()
    op.run(vectors[0], vectors[1], vectors[2], factor)
    vectors[0].backend.ready()
    return time.perf_counter() - start


@dataclass
class _Timing:
    """One run's vectors and what has been measured."""

    config: StreamConfig
    live: Live
    clock: WallClock
    chosen: Backend
    found: dict[tuple[str, str], list[float]] = field(default_factory=dict)

    def all(self) -> None:
        """One untimed round, then the repetitions, then the triad over lengths."""
        arrays = [empty(self.config.length) for _ in range(3)]
        for array, value in zip(arrays, (1.0, 2.0, 0.0), strict=True):
            array[:] = value
        offered = candidates(self.chosen, self.config.through)
        vectors = {b.name: [Vector(b, x) for x in arrays] for b in offered}
        for name in vectors:
            for op in OPERATIONS:
                seconds(op, vectors[name], self.config.factor)
        for repeat in range(self.config.repeats):
            self.live.report("timing", repeat, self.config.repeats)
            # There and back again, so that none always finds what the same other left in cache.
            order = list(vectors)[:: -1 if repeat % 2 else 1]
            for op in OPERATIONS:
                for name in order:
                    self.live.poll(self.clock.now())
                    self.timed(op, name, vectors[name])
        self.sweep(arrays, (self.chosen, native()))

    def timed(self, op: Operation, name: str, vectors: list[Vector]) -> None:
        """One measurement: its span and its curve."""
        start = self.clock.now()
        taken = seconds(op, vectors, self.config.factor)
        counted = op.counted * self.config.length
        pins = op.moved(vectors[0].backend.streams) * self.config.length
        said = tag(dtype="float64", shape=f"{self.config.length}", variant=name, pins=pins)
        flops = float(op.flops * self.config.length)
        self.live.emit(Span(start + taken, op.name, name, start, flops, float(counted), said))
        rates = self.found.setdefault((op.name, name), [])
        rates.append(counted / taken)
        self.live.curve(self.clock.now(), OVER_TIME[op.name], name, list(enumerate(rates, 1)))

    def sweep(self, arrays: list[np.ndarray], compared: tuple[Backend, ...]) -> None:
        """The triad's best of five runs at lengths from 4,096 to the config's."""
        triad, factor = OPERATIONS[-1], self.config.factor

        def at(length: int) -> dict[str, Callable[[], float]]:
            vectors = {b.name: [Vector(b, x[:length]) for x in arrays] for b in compared}
            return {name: partial(seconds, triad, vectors[name], factor) for name in vectors}

        lengths = [length for length in LENGTHS if length <= self.config.length]
        rate = {SWEEP: lambda length, name, taken: [triad.counted * length / min(taken[name])]}
        over = Interleaved("timing the triad", lengths, at, rate, rounds=lambda length: 5)
        measure(over, self.clock, self.live)
