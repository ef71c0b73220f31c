"""The six kernels with their data: sized so that each belongs to one class by construction.

Sizes follow the paper's hierarchy shrunk by `scale`, whatever caches are then simulated.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from engine.kernels.experiments.data_movement import recorded
from engine.kernels.experiments.data_movement.facts import facts

TASKS = 64  # independent vectors of the kernels that reuse data: the most cores they can keep busy
PASSES = 6
TERMS = 8
LOOP = 2  # instructions an innermost iteration spends on its counter and branch


@dataclass(frozen=True)
class Trace:
    """What cores did. `stream`: their accesses one core after another; core c's end at `ends[c]`.

    `element`: bytes of an element. `operations` and `instructions` (accesses, operations and loops)
    are counted from the source, not by a compiler. `result`: what was computed.
    """

    stream: np.ndarray
    ends: np.ndarray
    element: int
    operations: int
    instructions: int
    result: np.ndarray

    @property
    def places(self) -> np.ndarray:
        """Element addresses, in order."""
        return (self.stream >> 1) // self.element

    @property
    def intensity(self) -> float:
        """Operations for each access of an L1 line."""
        return self.operations / len(self.stream)


@dataclass(frozen=True)
class Kernel:
    """`record(cores, scale, seed)` runs it on that many cores; `belongs`: the class it was built
    for, and `why`. `chained`: an address waits for what the one before it held."""

    name: str
    belongs: str
    why: str
    record: Callable[[int, int, int], Trace]
    chained: bool = False


def _bytes(level: str, scale: int) -> int:
    return int(facts()["hierarchy"][f"{level}_kib"] * 1024 / scale)


def _cuts(count: int, cores: int) -> np.ndarray:
    """Where the cores' equal parts of `count` begin, and the end."""
    return np.arange(cores + 1) * count // cores


def _gather(
    cores: int, accesses: int, element: int, each: tuple[int, int], iterations: int,
    run: Callable[[np.ndarray, int, int], int], result: np.ndarray,
) -> Trace:  # fmt: skip
    """Let every core record after the one before. `each`: operations, innermost iterations."""
    stream = np.empty(accesses, np.int64)
    ends, at = np.zeros(cores, np.int64), 0
    for core in range(cores):
        at = run(stream, at, core)
        ends[core] = at
    operations, loops = each[0] * iterations, each[1] * iterations
    total = at + operations + LOOP * loops
    return Trace(stream[:at], ends, element, operations, total, result)


def triad(cores: int, scale: int, seed: int) -> Trace:
    """STREAM's triad over three vectors of 4 × L3 together, once."""
    count = 4 * _bytes("l3", scale) // 24
    x_3N = np.random.default_rng(seed).random((3, count))
    cut = _cuts(count, cores)

    def run(out: np.ndarray, at: int, core: int) -> int:
        return int(recorded.triad(out, at, x_3N, cut[core], cut[core + 1], 3.0))

    return _gather(cores, 3 * count, 8, (2, 1), count, run, x_3N)


def records(cores: int, scale: int, seed: int) -> Trace:
    """Linked records of one line each, 4 × L3 together, in random order, once."""
    count = 4 * _bytes("l3", scale) // 64
    draw = np.random.default_rng(seed)
    order = draw.permutation(count)
    table_RW = draw.integers(0, 256, (count, 16)).astype(np.int32)
    table_RW[order, 0] = np.roll(order, -1)
    cut = _cuts(count, cores)
    found = np.zeros((cores, 2), np.int64)

    def run(out: np.ndarray, at: int, core: int) -> int:
        some = cut[core + 1] - cut[core]
        start = order[cut[core]]
        return int(recorded.records(out, at, table_RW, start, some, 7, found[core]))

    return _gather(cores, 16 * count, 4, (4, 1), 15 * count, run, found)


def quantise(cores: int, scale: int, seed: int) -> Trace:
    """Passes over samples of 1.5 × L3 together, each core over its own part."""
    count = 3 * _bytes("l3", scale) // 2 // 4
    x_N = np.random.default_rng(seed).standard_normal(count).astype(np.float32)
    cut = _cuts(count, cores)
    levels = np.tile([-0.1, 0.1], (cores, 1))

    def run(out: np.ndarray, at: int, core: int) -> int:
        part = (cut[core], cut[core + 1])
        return int(recorded.quantise(out, at, x_N, *part, PASSES, levels[core]))

    return _gather(cores, PASSES * count, 4, (4, 1), PASSES * count, run, levels)


def _tasks(
    cores: int, size: int, seed: int, accesses: int, operations: tuple[int, int],
    run: Callable[[np.ndarray, int, np.ndarray, int], int],
) -> Trace:  # fmt: skip
    """`TASKS` vectors of `size` float64; each core takes its share of them, one after another."""
    u_TN = np.random.default_rng(seed).random((TASKS, size))
    cut = _cuts(TASKS, cores)

    def every(out: np.ndarray, at: int, core: int) -> int:
        for task in range(cut[core], cut[core + 1]):
            at = run(out, at, u_TN, task)
        return at

    updates = TASKS * PASSES * size
    return _gather(cores, updates * accesses, 8, operations, updates, every, u_TN)


def react(cores: int, scale: int, seed: int) -> Trace:
    """Reaction and diffusion on vectors of 1.5 × L2: one fits L3, all 64 are three times L3."""

    def run(out: np.ndarray, at: int, u_TN: np.ndarray, task: int) -> int:
        return int(recorded.react(out, at, u_TN, task, PASSES, 0.2, 0.1))

    return _tasks(cores, 3 * _bytes("l2", scale) // 16, seed, 4, (9, 1), run)


def smooth(cores: int, scale: int, seed: int) -> Trace:
    """Smoothing of vectors of L2 / 2: past L1, never past L2."""

    def run(out: np.ndarray, at: int, u_TN: np.ndarray, task: int) -> int:
        return int(recorded.smooth(out, at, u_TN, task, PASSES))

    return _tasks(cores, _bytes("l2", scale) // 16, seed, 4, (3, 1), run)


def series(cores: int, scale: int, seed: int) -> Trace:
    """Sine series on vectors of L2 / 4, 20 operations for each weight loaded."""
    weights_K = np.full(TERMS, 1.0 / TERMS)

    def run(out: np.ndarray, at: int, u_TN: np.ndarray, task: int) -> int:
        return int(recorded.series(out, at, u_TN, task, PASSES, weights_K))

    each = (20 * TERMS, TERMS + 1)
    return _tasks(cores, _bytes("l2", scale) // 32, seed, TERMS + 2, each, run)


KERNELS = (
    Kernel("triad", "1a", "streams once through more than L3 with two operations a pair", triad),
    Kernel(
        "linked-records",
        "1b",
        "one random line at a time, each read to its end",
        records,
        chained=True,
    ),
    Kernel(
        "quantiser", "1c", "comes back to all of its part, which 64 L2 hold and L3 not", quantise
    ),
    Kernel("reaction", "2a", "reuses a vector that fits L3 alone, not beside 63 others", react),
    Kernel("smoothing", "2b", "reuses a vector that L2 holds and L1 not", smooth),
    Kernel("sine-series", "2c", "reuses its data and computes 20 operations a load", series),
)
