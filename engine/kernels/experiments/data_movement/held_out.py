"""Kernels the classes were not made from: this engine's operators and some others, by address.

Sizes are those of a small language model or of the kernel itself, shrunk by `scale` as caches are;
none is chosen for a class. Addresses come in the order of plain loops; nothing is computed.
"""

from collections.abc import Callable, Iterator

import numpy as np

from engine.kernels.experiments.data_movement.kernels import LOOP, Kernel, Trace

NUMBER = 4  # bytes of an element: float32
HIDDEN, HEAD, VOCABULARY = 4096, 128, 32_000
TASKS = 64  # rows, heads or blocks: as many as the most cores
FAR = 1 << 24  # elements between two arrays


def _loads(*places: np.ndarray) -> np.ndarray:
    """Entries of a stream: the given places one after another in the last axis, read."""
    return 2 * NUMBER * np.stack(np.broadcast_arrays(*places), -1).reshape(-1)


def _stores(*places: np.ndarray) -> np.ndarray:
    """As `_loads`, but the last place of each is written."""
    found = 2 * NUMBER * np.stack(np.broadcast_arrays(*places), -1)
    found[..., -1] += 1
    return found.reshape(-1)


Part = Callable[[int, int, np.random.Generator], Iterator[np.ndarray]]


def _of(part: Part, operations: float, loads: float) -> Callable[[int, int, int], Trace]:
    """Records `part(task, scale, random)` for every task. `operations` for each access; an
    innermost iteration makes `loads` accesses."""

    def record(cores: int, scale: int, seed: int) -> Trace:
        tasks = [
            np.concatenate(list(part(task, scale, np.random.default_rng((seed, task)))))
            for task in range(TASKS)
        ]
        cut = np.arange(cores + 1) * TASKS // cores
        ends = np.cumsum([len(each) for each in tasks])[cut[1:] - 1]
        stream = np.concatenate(tasks)
        count = int(len(stream) * operations)
        total = len(stream) + count + int(LOOP * len(stream) / loads)
        return Trace(stream, ends, NUMBER, count, total, np.zeros(0))

    return record


def _norm(task: int, scale: int, draw: np.random.Generator) -> Iterator[np.ndarray]:
    i = np.arange(HIDDEN // scale)
    for row in range(2 * task, 2 * task + 2):
        yield _loads(row * len(i) + i)
        yield _stores(row * len(i) + i, FAR + i, 2 * FAR + row * len(i) + i)


def _swiglu(task: int, scale: int, draw: np.random.Generator) -> Iterator[np.ndarray]:
    i = task * 4 * HIDDEN // scale + np.arange(4 * HIDDEN // scale)
    yield _stores(i, FAR + i, 2 * FAR + i)


def _adamw(task: int, scale: int, draw: np.random.Generator) -> Iterator[np.ndarray]:
    i = task * 4 * HIDDEN // scale + np.arange(4 * HIDDEN // scale)
    yield _loads(i, FAR + i, 2 * FAR + i, 3 * FAR + i)
    for array in (1, 2, 3):
        yield _stores(array * FAR + i)


def _matrix_vector(task: int, scale: int, draw: np.random.Generator) -> Iterator[np.ndarray]:
    i = np.arange(HIDDEN // scale)
    for row in range(8 * task, 8 * task + 8):
        yield _loads(FAR + i, 2 * FAR + row * len(i) + i)


def _matmul(task: int, scale: int, draw: np.random.Generator) -> Iterator[np.ndarray]:
    """A block of four columns, kept in registers four rows at a time."""
    k = np.arange(HIDDEN // scale)
    own = FAR + (task * len(k) + k) * 4
    for row in range(0, 8, 4):
        yield _loads(*((row + r) * len(k) + k for r in range(4)), *(own + c for c in range(4)))


def _decode(task: int, scale: int, draw: np.random.Generator) -> Iterator[np.ndarray]:
    """One query over 512 keys, then their values; scores between."""
    t, d = np.arange(512)[:, None], np.arange(max(HEAD // scale, 2))
    place = (task * 512 + t) * len(d) + d
    yield _loads(task * len(d) + d + 0 * t, FAR + place)
    yield _loads(2 * FAR + task * 512 + t + 0 * d, 3 * FAR + place)


def _prefill(task: int, scale: int, draw: np.random.Generator) -> Iterator[np.ndarray]:
    """Eight queries over 64 keys and values that all of them read."""
    t, d = np.arange(64)[:, None], np.arange(max(HEAD // scale, 2))
    place = (task * 64 + t) * len(d) + d
    for query in range(8):
        yield _loads((task * 8 + query) * len(d) + d + 0 * t, FAR + place)
        yield _loads(2 * FAR + t + 0 * d, 3 * FAR + place)


def _linear(task: int, scale: int, draw: np.random.Generator) -> Iterator[np.ndarray]:
    """A head's state, HEAD · HEAD, faded and added to by each of four tokens."""
    i = task * HEAD * HEAD // scale + np.arange(HEAD * HEAD // scale)
    for _ in range(4):
        yield _stores(i, FAR + i % HEAD, i)


def _sample(task: int, scale: int, draw: np.random.Generator) -> Iterator[np.ndarray]:
    """Logits read for the largest, for the sum, and for the choice."""
    i = task * VOCABULARY // scale + np.arange(VOCABULARY // scale)
    for _ in range(3):
        yield _loads(i)


def _embed(task: int, scale: int, draw: np.random.Generator) -> Iterator[np.ndarray]:
    i = np.arange(HIDDEN // scale)
    for token in draw.integers(0, VOCABULARY // 4, 8):
        yield _stores(token * len(i) + i, FAR * 2 + (task * 8 + token % 8) * len(i) + i)


def _probe(task: int, scale: int, draw: np.random.Generator) -> Iterator[np.ndarray]:
    """Keys looked up in a hash table of 32 MiB."""
    keys = task * 1024 + np.arange(1024)
    yield _loads(keys, FAR + draw.integers(0, (1 << 23) // scale, 1024))


def _sparse(task: int, scale: int, draw: np.random.Generator) -> Iterator[np.ndarray]:
    """Sparse matrix times a vector of 8 MiB: index, value, and the vector at that index."""
    i = task * 1024 + np.arange(1024)
    yield _loads(i, FAR + i, 2 * FAR + draw.integers(0, (1 << 21) // scale, 1024))


def _transpose(task: int, scale: int, draw: np.random.Generator) -> Iterator[np.ndarray]:
    side = int((1 << 11) / scale**0.5)
    j = np.arange(side)
    for row in range(task * side // TASKS, (task + 1) * side // TASKS):
        yield _stores(row * side + j, FAR + j * side + row)


def _stencil(task: int, scale: int, draw: np.random.Generator) -> Iterator[np.ndarray]:
    """Two sweeps of five points over a grid of 2 MiB, rows of it for each task."""
    side = int((1 << 19) ** 0.5 / scale**0.5)
    j = np.arange(1, side - 1)
    for sweep in range(2):
        read, write = (0, FAR) if sweep == 0 else (FAR, 0)
        for row in range(1 + task * (side - 2) // TASKS, 1 + (task + 1) * (side - 2) // TASKS):
            at = row * side + j
            yield _stores(*(read + at + by for by in (-side, -1, 0, 1, side)), write + at)


def _tree(task: int, scale: int, draw: np.random.Generator) -> Iterator[np.ndarray]:
    """A trie walked: nodes of one line in 64 MiB, each naming the next."""
    node = draw.integers(0, (1 << 20) // scale, (512, 1))
    yield _loads(16 * node + np.arange(4))


def _made(name: str, part: Part, operations: float, loads: float, chained: bool = False) -> Kernel:
    return Kernel(name, "", "", _of(part, operations, loads), chained)


# Operations for each access and accesses of an innermost iteration, counted from the loops.
HELD_OUT = (
    _made("norm", _norm, 1.0, 2), _made("swiglu", _swiglu, 4.0, 3),
    _made("adamw", _adamw, 1.7, 7), _made("matrix-vector", _matrix_vector, 1.0, 2),
    _made("matmul", _matmul, 4.0, 8), _made("decode attention", _decode, 1.0, 2),
    _made("prefill attention", _prefill, 1.0, 2), _made("linear attention", _linear, 1.3, 3),
    _made("sampling", _sample, 5.0, 1), _made("embedding", _embed, 0.0, 2),
    _made("hash probe", _probe, 1.5, 2), _made("sparse product", _sparse, 0.7, 3),
    _made("transpose", _transpose, 0.0, 2), _made("stencil", _stencil, 0.8, 6),
    _made("trie", _tree, 1.0, 4, chained=True),
)  # fmt: skip
