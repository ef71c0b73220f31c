"""Seconds of steps by the curves of attention, in one call a step or a run of steps (numba).

`Attention` in single numbers, one operation after another as there, so that both tell the same
bits; and what a step takes beside it. A simulator asks for every step.

Shape letters: B sequences of a step, C constants, K steps in a row, E parts of a step.
"""

from math import ceil
from typing import NamedTuple

import numpy as np

from engine.hardware.cost.attention import QUERIES, Attention
from engine.hardware.cost.curves import FITS, SPILLS
from engine.kernels.compiled import checked, inner, settled


class Constants(NamedTuple):
    """What no call changes. `tile` … `rate` are of prompts, `cut_` of new tokens, `of_` of memory
    that a call before has read too."""

    H: float
    G: float
    units: float
    rows: float  # queries of a tile, and keys of a block
    row: float
    part: float
    block: float
    tile: float
    tail: float
    launch: float
    heat: float  # 0: clocks do not fall
    warm_squared: float
    rate: float  # 0: by `of_`
    size: float
    queries: float
    keys: float
    cache: float
    overlap: float
    merge: float
    slower: float
    cut_block: float
    cut_launch: float
    cut_tile: float
    of_rate: float
    of_holds: float
    of_cache: float
    of_spills: float
    of_span: float
    layers: float


@inner
def _constants(of_C):
    return Constants(
        of_C[0], of_C[1], of_C[2], of_C[3], of_C[4], of_C[5], of_C[6], of_C[7],
        of_C[8], of_C[9], of_C[10], of_C[11], of_C[12], of_C[13], of_C[14], of_C[15],
        of_C[16], of_C[17], of_C[18], of_C[19], of_C[20], of_C[21], of_C[22], of_C[23],
        of_C[24], of_C[25], of_C[26], of_C[27], of_C[28],
    )  # fmt: skip


@inner
def _traffic(c, moved, beside):
    memory = moved / c.of_rate
    if c.of_holds == 0.0:
        return memory
    full = (moved + beside) / c.of_holds
    kept = min(max((c.of_spills - full) / c.of_span, 0.0), 1.0)
    return memory * (1 - kept + kept * c.of_rate / c.of_cache)


@inner
def _decode(c, ones, context):
    """One new token of each of `ones` sequences."""
    blocks = ceil(context / c.rows)
    cut = min(float(blocks), max(1.0, c.units // (ones * c.G)))
    turns = ceil(ones * c.G * cut / c.units)
    latency = ceil(blocks / cut) * c.cut_block * c.slower * turns
    memory = _traffic(c, c.cache * ones * context, 0.0)
    begin = c.slower * (c.cut_launch + c.merge * (cut > 1.0) + c.cut_tile * turns)
    return begin + max(latency, memory) + c.overlap * min(latency, memory)


@inner
def _added(beside_E, attention):
    """Seconds of a step: what comes before attention, that, and what comes after it."""
    seconds = beside_E[0] + attention
    for e in range(1, len(beside_E)):
        seconds += beside_E[e]
    return seconds


@checked
def decoding(
    constants_C: np.ndarray,
    beside_E: tuple[float, ...],
    ones: int,
    seen: int,
    seconds_K: np.ndarray,
) -> None:
    """Fill the seconds of steps in a row in which `ones` sequences decode, that see `seen` tokens
    in the first."""
    c = _constants(constants_C)
    for k in range(len(seconds_K)):
        attention = c.layers * _decode(c, ones, (seen + k * ones) / ones)
        seconds_K[k] = _added(beside_E, attention)


@checked
def mixed(
    constants_C: np.ndarray, beside_E: tuple[float, ...], new_B: np.ndarray, before_B: np.ndarray,
    decodes: int, seen: int,
) -> float:  # fmt: skip
    """Seconds of a step in which the first `decodes` sequences decode, seeing `seen` tokens, and
    the others have `new_B` tokens of a prompt behind `before_B` cached ones."""
    c, ones, new, before = _constants(constants_C), decodes, 0, 0
    work = longest = uneven = 0.0
    for b in range(decodes, len(new_B)):
        tokens, cached = new_B[b], before_B[b]
        if tokens == 1:
            ones, seen = ones + 1, seen + cached + 1
            continue
        blocks, behind = ceil(tokens / c.rows), cached / c.rows
        block = c.part * c.block
        mean, most = behind + (blocks + 1) / 2, behind + blocks
        rows = ceil(tokens / (c.part * c.rows))
        each = c.H * rows * (mean * block + c.tile) / c.units
        work = work + each if new else each
        if not new or most * block + c.tile > longest:
            longest, uneven = most * block + c.tile, (most - mean) * block
        new, before = new + tokens, before + cached
    if not new:
        return _added(beside_E, c.layers * _decode(c, ones, seen / ones))
    moved = c.size * (c.queries * new + c.keys * before)
    launch = c.launch
    if c.rate == 0.0:
        launch = c.launch + _traffic(c, 2 * c.cache * new, c.size * c.queries * new)
    joins = ones > 0 and c.row != 0.0
    if joins:
        single = ceil(seen / ones / c.rows) * c.row * c.block + c.tile
        work = work + c.H * ones * single / c.units
        longest_all = max(max(work, longest), single)
    else:
        longest_all = max(work, longest)
    compute = longest_all + c.tail * uneven
    if not joins and c.heat != 0.0:
        square = compute * compute
        compute = compute * (1 + c.heat * square / (square + c.warm_squared))
    if joins:
        answers = c.cache * ones * (seen / ones)
        if c.rate:
            memory = moved / c.rate + _traffic(c, answers, 0.0)
        else:
            memory = _traffic(c, moved + answers, 0.0)
    else:
        memory = moved / c.rate if c.rate else _traffic(c, moved, 0.0)
    attention = launch + max(compute, memory)
    if ones and not joins:
        attention = attention + _decode(c, ones, seen / ones)
    return _added(beside_E, c.layers * attention)


class StepSeconds:
    """Seconds of steps of one model, whose attention is `attention` in each of `layers`."""

    def __init__(self, attention: Attention, layers: int) -> None:
        a, found, traffic = attention, attention.found, attention.traffic
        new, heat = found.decode, attention.heat if found.prefill.heat else 0.0
        told = Constants(
            a.H, a.G, a.units, QUERIES, a.row, a.part, a.block, a.tile, a.tail, a.launch, heat,
            found.prefill.warm**2, a.rate, a.size, a.queries, a.keys, a.cache, a.overlap, a.merge,
            a.slower, new.block, new.launch, new.tile, *traffic, SPILLS, SPILLS - FITS, layers,
        )  # fmt: skip
        self.constants_C = np.array(told, np.float64)
        self._decoding, self._mixed = settled(decoding), settled(mixed)

    def decoding(self, beside_E: tuple[float, ...], ones: int, seen: int, count: int) -> np.ndarray:
        """Of `count` steps in a row in which `ones` sequences decode, that see `seen` tokens in the
        first; `beside_E`: what comes before attention, and after it part by part."""
        seconds_K = np.empty(count)
        self._decoding(self.constants_C, beside_E, ones, seen, seconds_K)
        return seconds_K

    def mixed(
        self, beside_E: tuple[float, ...], new_B: np.ndarray, before_B: np.ndarray, decodes: int,
        seen: int,
    ) -> float:  # fmt: skip
        """Of a step whose first `decodes` sequences decode, seeing `seen` tokens; the others have
        `new_B` (int32) tokens of a prompt behind `before_B` cached ones."""
        return float(self._mixed(self.constants_C, beside_E, new_B, before_B, decodes, seen))
