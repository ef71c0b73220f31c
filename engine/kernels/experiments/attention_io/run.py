"""The driver of traffic counts: one watched run, then every tiling over sizes of fast memory."""

import math
from typing import cast

import numpy as np

from engine.core.clock import WallClock
from engine.core.config import kinds
from engine.core.difference import largest
from engine.core.events import Level, Mark, Span
from engine.core.plot import BOUND, Plot
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
    live.open(config, clock, plots=[SWEEP, TIMES, WATCHED])
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
        asked = sizes(config.length, config.width)
        self.limits(asked)
        square = (config.length * config.width) ** 2
        points: dict[str, list[tuple[int, int]]] = {kind: [] for kind in tilings}
        for number, capacity in enumerate(asked):
            self.live.report("counting words", number, len(asked))
            for kind, tiling in tilings.items():
                if capacity >= tiling.smallest(config.width):
                    self.live.poll(self.clock.now())
                    counted = self.count(tiling, capacity)
                    points[kind].append((capacity, counted.words))
                    m, words = np.array(points[kind], float).T
                    self.draw(SWEEP, kind, m, words)
                    self.draw(TIMES, kind, m, words * m / square)

    def limits(self, asked: list[int]) -> None:
        """The bounds over the same sizes."""
        shape = (self.config.length, self.config.width)
        for name, bound in (
            (f"any algorithm{BOUND}", bounds.any_tiling),
            (f"the paper's order, constant 1{BOUND}", bounds.order),
        ):
            self.draw(SWEEP, name, np.array(asked, float), [bound(*shape, m) for m in asked])
        held = [m for m in asked if m >= shape[1] ** 2]
        rows = [bounds.whole_rows(*shape, m) for m in held]
        self.draw(SWEEP, f"whole rows, no score moved{BOUND}", np.array(held, float), rows)
        four = np.full(len(held), 4.0)
        self.draw(TIMES, f"4: Q and O stay, K and V pass{BOUND}", np.array(held, float), four)

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
