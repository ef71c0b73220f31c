"""Decode attention of single queries as one stream of keys and values, as LLVM code.

Sixteen keys are scored while the values of the sixteen before them are added up: two streams from
memory at once, and no phase in which the processor computes and memory rests. Its maximum is
online (Milakov and Gimelshein, arXiv 1805.02867), raised once in sixteen keys.
"""

import math
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types

from engine.kernels import lanes
from engine.kernels.compiled import emitted, inner
from engine.kernels.lanes import LANES, WIDE, whole
from engine.kernels.paged_attention.gathered import reader, stored
from engine.kernels.rows import SIZE, fetch
from engine.kernels.stored import read

WIDTHS = (64, 128)  # head sizes
BEST, BELOW = 0, 1  # a head's state: largest score, sum of weights; then the parts below
WEIGHTS, SUMS = LANES, 2 * LANES  # of the last strip's keys; of the values, so far
# What is asked for before its turn. With AVX-512 each line of keys and of values, so many bytes
# ahead: the processor's own prefetching loses two streams among a strip's other loads. Without
# AVX-512 it does not lose them, and asking for what it brings anyway costs; but it stops where a
# page of memory ends, and one line of each token's row, a strip ahead, sets it going in the next.
AHEAD = 3072 if WIDE else 0
NOTHING = np.float32(-np.inf)


def state(dim: int) -> int:
    """Floats of one head's state: as above, then the scores of a strip."""
    return 3 * LANES + dim


def _row(dim: int) -> Any:
    vectors = dim // LANES

    @emitted
    def row(context, q, q_at, k, k_at, v, v_at, ahead, memory, own, j):
        """A key's score, kept for `soften`; a value of the strip before, weighed and added.

        With AHEAD what lies `ahead` numbers further is asked for.
        """
        signature = types.void(q, SIZE, k, SIZE, v, SIZE, SIZE, memory, SIZE, SIZE)

        def emit(target, b, signature, args):
            q, q_at, k, k_at, v, v_at, ahead, memory, own, j = args
            kinds = signature.args
            read_key, read_value = reader(b, kinds[2]), reader(b, kinds[4])
            read_float = reader(b, kinds[0])
            query = lanes.address(target, b, kinds[0], q, q_at, lanes.FLOAT)
            key = lanes.address(target, b, kinds[2], k, k_at, stored(kinds[2]))
            value = lanes.address(target, b, kinds[4], v, v_at, stored(kinds[4]))
            own = lanes.address(target, b, kinds[7], memory, own, lanes.FLOAT)
            weight = b.load(lanes.at(b, own, b.add(whole(WEIGHTS), j)))
            weight = lanes.splat(b, weight)
            product = lanes.zeros()
            for i in range(vectors):
                at = whole(LANES * i)
                for array in (key, value) if AHEAD else ():
                    lanes.fetch(b, lanes.at(b, array, b.add(at, ahead)))
                here = read_key(lanes.at(b, key, at))
                product = lanes.fma(b, read_float(lanes.at(b, query, at)), here, product)
                total = lanes.at(b, own, b.add(whole(SUMS), at))
                here = read_value(lanes.at(b, value, at))
                lanes.store(b, lanes.fma(b, weight, here, read_float(total)), total)
            kept = lanes.at(b, own, b.add(whole(SUMS + dim), j))
            b.store(lanes.fold(b, product, b.fadd), kept)
            return target.get_dummy_value()

        return signature, emit

    return row


def _soften(dim: int) -> Any:
    @emitted
    def soften(context, memory, own, count):
        """The kept scores become `count` weights; the sums shrink to a raised maximum."""
        signature = types.void(memory, SIZE, SIZE)

        def emit(target, b, signature, args):
            memory, own, count = args
            read_float = reader(b, signature.args[0])
            own = lanes.address(target, b, signature.args[0], memory, own, lanes.FLOAT)
            score = _only(b, read_float(lanes.at(b, own, whole(SUMS + dim))), count)
            best = lanes.splat(b, b.load(lanes.at(b, own, whole(BEST))))
            highest = lanes.splat(b, lanes.fold(b, score, lambda x, y: lanes.maximum(b, x, y)))
            highest = lanes.maximum(b, highest, best)
            shrink = lanes.exp(b, b.fsub(best, highest))
            weight = lanes.exp(b, b.fsub(score, highest))
            first = ir.Constant(lanes.INT32, 0)
            below = b.fmul(b.load(lanes.at(b, own, whole(BELOW))), b.extract_element(shrink, first))
            below = b.fadd(below, lanes.fold(b, weight, b.fadd))
            b.store(b.extract_element(highest, first), lanes.at(b, own, whole(BEST)))
            b.store(below, lanes.at(b, own, whole(BELOW)))
            lanes.store(b, weight, lanes.at(b, own, whole(WEIGHTS)))
            for i in range(dim // LANES):
                total = lanes.at(b, own, whole(SUMS + LANES * i))
                lanes.store(b, b.fmul(read_float(total), shrink), total)
            return target.get_dummy_value()

        return signature, emit

    return soften


def _only(b: Any, score: Any, count: Any) -> Any:
    """The first `count` lanes; the others can never be chosen."""
    order = ir.Constant(lanes.INTS, list(range(LANES)))
    undefined = ir.Constant(lanes.INTS, ir.Undefined)
    limit = b.insert_element(undefined, b.trunc(count, lanes.INT32), ir.Constant(lanes.INT32, 0))
    limit = b.shuffle_vector(limit, undefined, ir.Constant(lanes.INTS, [0] * LANES))
    return b.select(b.icmp_signed("<", order, limit), score, lanes.same(float("-inf")))


_row_64, _row_128 = _row(64), _row(128)
_soften_64, _soften_128 = _soften(64), _soften(128)


@inner
def _rows(q, q_at, k, v, places, strips, head, members, dim, ahead, memory, own, size):
    """A strip's rows in the order they lie in: each token's heads, then the next token's.

    `strips`: where in `places` its keys are, the values of the strip before, the next strip's keys.
    """
    here, before, then = strips
    for j in range(LANES):
        if not AHEAD:  # the values that come next are those of this strip
            fetch(k, (places[then + j] + head) * dim)
            fetch(v, (places[here + j] + head) * dim)
        key, value = (places[here + j] + head) * dim, (places[before + j] + head) * dim
        for member in range(members):
            at, to = member * dim, own + member * size
            if dim == 64:
                _row_64(q, q_at + at, k, key + at, v, value + at, ahead, memory, to, j)
            else:
                _row_128(q, q_at + at, k, key + at, v, value + at, ahead, memory, to, j)


@inner
def find(places, at, count, size, table, table_at, page_size, key, heads):
    """Where `count` tokens from `key` on lie, counted in heads; the last one fills up to `size`."""
    page, within = key // page_size, key % page_size
    start = np.int64(table[table_at + page]) * page_size
    for j in range(count):
        if within == page_size:
            page, within = page + 1, 0
            start = np.int64(table[table_at + page]) * page_size
        places[at + j] = (start + within) * heads
        within += 1
    for j in range(count, size):
        places[at + j] = places[at + max(count - 1, 0)]


@inner
def attend_stream(
    q, q_at, k, v, head, members, heads, dim, table, table_at, page_size, begin, end, scale,
    out, out_at, lse, lse_at, work, work_at, places, places_at,
):  # fmt: skip
    """As `partial_cpu.attend_run`, for one query a key head of a size in WIDTHS, no soft cap.

    `work` needs members · (dim + state(dim)) floats, `places` 3 · LANES integers.
    """
    memory, size = work_at + members * dim, 3 * LANES + dim
    for i in range(members * dim):
        work[work_at + i] = q[q_at + i] * scale
    for i in range(memory, memory + members * size):
        work[i] = np.float32(0)
    for member in range(members):
        work[memory + member * size + BEST] = np.float32(-np.inf)
    # Rows are read one after another, or a head's alone: as many rows ahead either way.
    ahead = AHEAD // (dim * k.itemsize) * dim * (heads // members)
    here = before = places_at
    if end > begin:
        first = min(LANES, end - begin)
        find(places, here, first, LANES, table, table_at, page_size, begin, heads)
    for start in range(begin, end, LANES):
        count, left = min(LANES, end - start), min(LANES, end - start - LANES)
        then = places_at + ((start - begin) // LANES + 1) % 3 * LANES if left > 0 else here
        if left > 0:
            find(places, then, left, LANES, table, table_at, page_size, start + LANES, heads)
        _rows(
            work, work_at, k, v, places, (here, before, then), head, members, dim, ahead, work,
            memory, size,
        )  # fmt: skip
        for member in range(members):
            if dim == 64:
                _soften_64(work, memory + member * size, count)
            else:
                _soften_128(work, memory + member * size, count)
        before, here = here, then
    last = (end - begin - 1) % LANES + 1 if end > begin else 0
    for member in range(members):
        own, to = memory + member * size, out_at + member * dim
        below, best = work[own + BELOW], work[own + BEST]
        for j in range(last):
            value, weight = (places[before + j] + head + member) * dim, work[own + WEIGHTS + j]
            for d in range(dim):
                work[own + SUMS + d] += weight * read(v, value + d)
        for d in range(dim):
            out[to + d] = work[own + SUMS + d] / below if last else np.float32(0)
        lse[lse_at + member] = best + np.float32(math.log(below)) if last else NOTHING
