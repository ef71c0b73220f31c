"""The driver of traffic counts: one watched run, then every tiling over sizes of fast memory."""

import math
from collections.abc import Callable
from functools import partial
from typing import cast

import numpy as np

from engine.core.clock import WallClock
from engine.core.config import kinds
from engine.core.difference import largest
from engine.core.events import Level, Mark, Span
from engine.core.interleaved import Interleaved, measure
from engine.core.plot import Plot
from engine.core.run import Live
from engine.core.tags import tag
from engine.kernels.experiments.attention_io import bounds
from engine.kernels.experiments.attention_io.config import TrafficConfig
from engine.kernels.experiments.attention_io.memory import ARRAYS, Counted
from engine.kernels.experiments.attention_io.tiling import Tiling

SIZE = "fast memory (words)"
SWEEP = Plot("words moved over fast memory", SIZE, "moved (words)", log_x=True, log_y=True)
TIMES = Plot("in units of N²C² by M", SIZE, "moved / (N²C²/M)", log_x=True, log_y=True)
WATCHED = Plot("the watched run", "step of the outer loop", "moved so far (words)")
ERROR = "largest error"
COMPARED = ("flash", "products")


def run(config: TrafficConfig, live: Live) -> None:
    """Count the words that tilings move; curves carry them, levels how far results are off."""
    clock = WallClock()
    live.open(
        config,
        clock,
        plots=[SWEEP, TIMES, WATCHED],
        question="How many words must move, and who comes near it?",
    )
    traffic = _Traffic(config, live, clock)
    traffic.watch()
    traffic.sweep()


def sizes(length: int, width: int) -> list[int]:
    """Words of fast memory from C²/8 to NC, doubling, C² among them."""
    start = width * width
    count = int(math.log2(length / width)) if length >= width else 0
    found = [max(5, start // 2**k) for k in (3, 2, 1)] + [start * 2**k for k in range(count + 1)]
    return sorted({*found, length * width})


def attention(q_NC: np.ndarray, k_NC: np.ndarray, v_NC: np.ndarray) -> np.ndarray:
    """softmax(Q Kᵀ / √C) V, the whole score matrix at once."""
    s_NN = q_NC @ k_NC.T / math.sqrt(q_NC.shape[1])
    p_NN = np.exp(s_NN - s_NN.max(1, keepdims=True))
    return cast(np.ndarray, p_NN / p_NN.sum(1, keepdims=True) @ v_NC)


class _Traffic:
    """The inputs of a run, their true attention, and what has been counted so far."""

    def __init__(self, config: TrafficConfig, live: Live, clock: WallClock) -> None:
        self.config, self.live, self.clock = config, live, clock
        draw = np.random.default_rng(config.seed)
        shape = (3, config.length, config.width)
        self.q_NC, self.k_NC, self.v_NC = draw.standard_normal(shape)
        self.truth = attention(self.q_NC, self.k_NC, self.v_NC)

    def watch(self) -> None:
        """One run at the size asked for, told array by array."""
        config = self.config
        counted = self.count(config.tiling, config.memory)
        steps = np.arange(1.0, len(counted.steps) + 1)
        for which, name in enumerate(ARRAYS):
            if counted.moved[which].any():
                self.draw(WATCHED, name, steps, counted.steps[:, which].astype(float))
        per = counted.words * config.memory / (config.length * config.width) ** 2
        text = (
            f"{counted.words:,} words moved with {config.memory:,} of fast memory "
            f"({counted.held:,} used): {per:.2f} × N²C²/M"
        )
        self.live.emit(Mark(self.clock.now(), config.tiling.kind, "counted", text))

    def sweep(self) -> None:
        """The watched tiling, FlashAttention's and the two products over sizes of fast memory."""
        config = self.config
        known = {kind: cast(Tiling, kinds(Tiling)[kind](kind=kind)) for kind in COMPARED}
        tilings: dict[str, Tiling] = {**known, config.tiling.kind: config.tiling}
        shape = (config.length, config.width)
        square = (config.length * config.width) ** 2

        def at(capacity: int) -> dict[str, Callable[[], float]]:
            fitting = {k: t for k, t in tilings.items() if capacity >= t.smallest(config.width)}
            return {kind: partial(self.words, fitting[kind], capacity) for kind in fitting}

        def large(bound: Callable[[int], float]) -> Callable[[int], float | None]:
            return lambda m: bound(m) if m >= config.width**2 else None

        over_sizes = Interleaved(
            "counting words",
            sizes(*shape),
            at,
            {
                SWEEP: lambda _, kind, found: found[kind],
                TIMES: lambda m, kind, found: [found[kind][0] * m / square],
            },
            bounds={
                SWEEP: {
                    "any algorithm": lambda m: bounds.any_tiling(*shape, m),
                    "the paper's order, constant 1": lambda m: bounds.order(*shape, m),
                    "whole rows, no score moved": large(lambda m: bounds.whole_rows(*shape, m)),
                },
                TIMES: {"4: Q and O stay, K and V pass": large(lambda m: 4.0)},
            },
        )
        measure(over_sizes, self.clock, self.live)

    def words(self, tiling: Tiling, capacity: int) -> float:
        """Words that one tiling moves."""
        return float(self.count(tiling, capacity).words)

    def count(self, tiling: Tiling, capacity: int) -> Counted:
        """Run one tiling; its span and how far its result is from the truth are emitted."""
        start = self.clock.now()
        config = self.config
        held = capacity * config.roomy
        counted = tiling.attend(self.q_NC, self.k_NC, self.v_NC, held, config.evicts)
        now = self.clock.now()
        said = tag(M=capacity, words=counted.words, held=counted.held)
        self.live.emit(
            Span(now, tiling.kind, "attention", start, bytes=8.0 * counted.words, tag=said)
        )
        self.live.emit(Level(now, tiling.kind, ERROR, largest(counted.o_NC, self.truth)))
        return counted

    def draw(self, plot: Plot, series: str, x: np.ndarray, y: np.ndarray | list[float]) -> None:
        """A curve, in place of an earlier one of that name."""
        self.live.curve(self.clock.now(), plot, series, np.stack([x, np.asarray(y, float)]))
