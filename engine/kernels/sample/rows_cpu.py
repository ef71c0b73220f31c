"""Sampling, a row a task (numba): what a row draws depends on its seed and position alone.

Shape letters: R rows, V vocabulary.
"""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numba
import numpy as np
from numba import prange

from engine.kernels.compiled import inner, is_cached, kernel, serial
from engine.kernels.draws import FIRST, GOLDEN, SECOND
from engine.kernels.lanes import LANES
from engine.kernels.rows import exponential_sum, largest, part
from engine.kernels.sample.reference import Wishes

ONE = 0x3FF0000000000000  # the bits of 1.0
# Logits that are worth a thread of their own, about a millisecond of work: on a busy machine the
# others wait a time slice (8 ms where measured) for one that is woken.
WORTH_GREEDY, WORTH_DRAW = 1 << 21, 1 << 17
BLOCK = 64  # vectors of a row among which the largest is looked for before where it is


@inner
def likeliest(logits, at, V):
    """The likeliest token of a row and its logit."""
    whole, top, first = V // LANES, np.float32(-np.inf), 0
    for start in range(0, whole, BLOCK):  # only the first block that has it is searched
        best = largest(logits, at + start * LANES, min(BLOCK, whole - start))
        if best > top:
            top, first = best, start * LANES
    row = part(logits, at)
    for i in range(whole * LANES, V):
        if row[i] > top:
            top, first = row[i], i
    for i in range(first, V):
        if row[i] == top:
            return i, top
    return 0, top  # every logit is NaN


@inner
def _greedy_row(logits, r, V, tokens, logprobs):
    token, top = likeliest(logits, r * V, V)
    whole = V // LANES
    total = exponential_sum(logits, r * V, whole, top)
    for i in range(whole * LANES, V):
        total += np.float32(math.exp(logits[r * V + i] - top))
    tokens[r], logprobs[r] = token, -np.float32(math.log(total))


@kernel
def _greedy(logits, R, V, tokens, logprobs):
    for index in prange(R):
        _greedy_row(logits, np.int64(index), V, tokens, logprobs)


@serial
def _greedy_alone(logits, R, V, tokens, logprobs):
    for r in range(R):
        _greedy_row(logits, r, V, tokens, logprobs)


@inner
def _mix(value):
    value = value + np.uint64(GOLDEN)
    value = (value ^ (value >> np.uint64(30))) * np.uint64(FIRST)
    value = (value ^ (value >> np.uint64(27))) * np.uint64(SECOND)
    return value ^ (value >> np.uint64(31))


@inner
def _uniform(seed, position):
    bits = _mix(_mix(np.uint64(seed)) ^ np.uint64(position)) >> np.uint64(11)
    return np.float64(bits) * 2.0**-53


@inner
def _least(weights, bits, count, mass):
    """The largest value that at least `count` weights, of at least `mass` together, reach.

    As bits: numbers that are not negative are ordered as their bits are, so halving ends exactly.
    """
    low, high = 0, ONE + 1
    while high - low > 1:
        middle = (low + high) // 2
        found, total = 0, 0.0
        for i in range(len(bits)):
            if bits[i] >= middle:
                found += 1
                total += weights[i]
        if found >= count and total >= mass:
            low = middle
        else:
            high = middle
    return low


@inner
def _cut(weights, top_k, top_p, min_p):
    """Zero what top-k, then top-p, then min-p leave out; the largest weight is 1."""
    V, bits = len(weights), weights.view(np.int64)
    if 0 < top_k < V:
        least = _least(weights, bits, top_k, 0.0)
        for i in range(V):
            if bits[i] < least:
                weights[i] = 0.0
    if top_p < 1.0:
        total = 0.0
        for i in range(V):
            total += weights[i]
        least = _least(weights, bits, 1, top_p * total)
        before = 0.0
        for i in range(V):
            if bits[i] > least:
                before += weights[i]
        for i in range(V):  # of equal weights the first ones stay
            if bits[i] == least and before < top_p * total:
                before += weights[i]
            elif bits[i] <= least:
                weights[i] = 0.0
    if min_p > 0.0:
        for i in range(V):
            if weights[i] < min_p:
                weights[i] = 0.0


@inner
def draw(logits, at, V, temperature, top_k, top_p, min_p, seed, position):
    row, top = part(logits, at), likeliest(logits, at, V)[1]
    weights = np.empty(V, np.float64)
    for i in range(V):
        weights[i] = math.exp((np.float64(row[i]) - top) / temperature)
    _cut(weights, top_k, top_p, min_p)
    total = 0.0
    for i in range(V):
        total += weights[i]
    wanted, passed, last = _uniform(seed, position) * total, 0.0, 0
    for i in range(V):
        passed += weights[i]
        if weights[i] > 0.0:
            last = i
            if passed > wanted:
                return i
    return last


@kernel
def _sample(logits, R, V, temperature, top_k, top_p, min_p, seed, position, tokens):
    for index in prange(R):
        r = np.int64(index)
        if temperature[r] > 0.0:
            tokens[r] = draw(
                logits, r * V, V, temperature[r], top_k[r], top_p[r], min_p[r], seed[r], position[r]
            )
        else:
            tokens[r] = likeliest(logits, r * V, V)[0]


@contextmanager
def _threads(worth: int) -> Iterator[None]:
    """Run kernels on no more threads than are worth it."""
    had = numba.get_num_threads()
    wanted = max(1, min(had, worth))
    if wanted == had:
        yield
        return
    numba.set_num_threads(wanted)
    try:
        yield
    finally:
        numba.set_num_threads(had)


def greedy(logits_RV: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The likeliest token of each row (the lowest among equals) and its log-probability.

    int32 and float32 of shape [R]. A row of NaN gives token 0.
    """
    R, V = logits_RV.shape
    tokens, logprobs = np.empty(R, np.int32), np.empty(R, np.float32)
    if R:
        flat = np.ascontiguousarray(logits_RV, np.float32).reshape(-1)
        if flat.size < 2 * WORTH_GREEDY:  # no time is spent on asking for threads
            _greedy_alone(flat, R, V, tokens, logprobs)
        else:
            with _threads(flat.size // WORTH_GREEDY):
                _greedy(flat, R, V, tokens, logprobs)
    return tokens, logprobs


def sample(logits_RV: np.ndarray, wishes: Wishes) -> np.ndarray:
    """One token a row, int32: softmax at the temperature, cut by top-k, then top-p, then min-p."""
    R, V = logits_RV.shape
    tokens = np.empty(R, np.int32)
    if R:
        flat = np.ascontiguousarray(logits_RV, np.float32).reshape(-1)
        with _threads(flat.size // WORTH_DRAW):
            _sample(flat, R, V, *_columns(wishes), tokens)
    return tokens


def _columns(wishes: Wishes) -> list[np.ndarray]:
    kinds = np.float64, np.int64, np.float64, np.float64, np.int64, np.int64
    return [np.ascontiguousarray(w, kind) for w, kind in zip(wishes, kinds, strict=True)]


def _kernels() -> list[tuple[Any, ...]]:
    """The kernels, each with arguments as it is given them."""
    logits, tokens, logprobs = np.zeros(1, np.float32), np.zeros(1, np.int32), np.zeros(1, "f4")
    columns = _columns(Wishes(*[np.ones(1)] * 6))
    rows = logits, 1, 1, tokens, logprobs
    return [(_greedy, *rows), (_greedy_alone, *rows), (_sample, logits, 1, 1, *columns, tokens)]


def ready() -> bool:
    """Whether all would run without compiling first."""
    return all(is_cached(*each) for each in _kernels())


def prepare() -> None:
    """Compile all, or load them if they are compiled."""
    for run, *arguments in _kernels():
        run(*arguments)
