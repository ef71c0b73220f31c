"""Paged attention on the processor (numba): online softmax over blocks of keys.

A task is a few query rows of a few key/value heads; it walks the visible keys in blocks that start
at multiples of 256 positions: scores, softmax of the block, weighted values, then the block is
merged into the running result (Milakov and Gimelshein, arXiv 1805.02867). Blocks and lanes sit at
fixed positions, so a query's bits depend neither on the batch nor on how its prompt was chunked.
"""

import math

import numpy as np

from engine.kernels.compiled import inner, pasted
from engine.kernels.lanes import LANES
from engine.kernels.matmul.panels_cpu import add_product
from engine.kernels.rows import dots, exponentials, fetch, largest, part
from engine.kernels.stored import read

ROWS = 32  # query rows of a task, over all its heads
BLOCK = 256  # keys between merges
NOTHING = np.float32(-np.inf)

_dot_one, _dot_two, _dot_three, _dot_four = dots(1), dots(2), dots(3), dots(4)


def room(dim: int, value_dim: int) -> int:
    """Floats of scratch one thread needs."""
    return ROWS * (_up(dim) + BLOCK + 2 * _up(value_dim)) + 4 * ROWS


def _up(dim: int) -> int:
    return -(-dim // LANES) * LANES


@pasted
def _fetch(x, at, numbers, line):
    """Ask for `numbers` numbers that follow each other, `line` numbers a cache line."""
    for d in range(0, numbers, line):
        fetch(x, at + d)


@pasted
def _score(q, q_at, q_width, rows, k, at, dim, out, out_at):
    """out[r · BLOCK] = q_r · k for one key."""
    vectors = dim // LANES
    row = 0
    while row < rows:
        from_, to = q_at + row * q_width, out_at + row * BLOCK
        if rows - row >= 4:
            _dot_four(q, from_, q_width, k, at, vectors, out, to, BLOCK)
        elif rows - row == 3:
            _dot_three(q, from_, q_width, k, at, vectors, out, to, BLOCK)
        elif rows - row == 2:
            _dot_two(q, from_, q_width, k, at, vectors, out, to, BLOCK)
        else:
            _dot_one(q, from_, q_width, k, at, vectors, out, to, BLOCK)
        row += 4
    if vectors * LANES < dim:
        for row in range(rows):
            rest = np.float32(0)
            for d in range(vectors * LANES, dim):
                rest += q[q_at + row * q_width + d] * read(k, at + d)
            out[out_at + row * BLOCK] += rest


@inner
def _weigh(p, p_at, rows, v, v_at, step, dim, count, out, out_at, width):
    """out[r] += Σ_j p[r, j] · v_j for `count` values that lie `step` numbers apart."""
    whole = dim // LANES
    add_product(p, p_at, BLOCK, rows, v, v_at, step, LANES, count, 0, whole, out, out_at, width)
    for row in range(rows):
        for d in range(whole * LANES, dim):
            total = out[out_at + row * width + d]
            for j in range(count):
                total += p[p_at + row * BLOCK + j] * read(v, v_at + j * step + d)
            out[out_at + row * width + d] = total


@inner
def _place(row, member, share, step, dim):
    """Where a row of the group's `member`-th head lies after the first."""
    return row // share * step + (member * share + row % share) * dim


@inner
def _slot(table, table_at, page_size, key):
    return np.int64(table[table_at + key // page_size]) * page_size + key % page_size


@inner
def _fill(x, first, last, value):
    for i in range(first, last):
        x[i] = value


@pasted
def _soften(scores, row, lanes, first, last, softcap, best, below):
    """Softmax weights of one row of a block, not yet divided by their sum, which goes to `below`.

    Keys outside `first` … `last` (positions in the block) weigh nothing.
    """
    s = part(scores, row * BLOCK)
    if softcap > 0:
        for j in range(first, last):
            s[j] = np.float32(math.tanh(s[j] / softcap)) * softcap
    _fill(s, 0, first, NOTHING)
    _fill(s, last, lanes, NOTHING)
    best[row] = largest(scores, row * BLOCK, lanes // LANES)
    if best[row] == NOTHING:
        _fill(s, 0, lanes, np.float32(0))
        below[row] = np.float32(0)
    else:
        below[row] = exponentials(scores, row * BLOCK, lanes // LANES, best[row])


@pasted
def _merge(best, below, block_best, block_below, row, result, here, width):
    """Fold a block's weighted values into the running ones; the larger maximum rules."""
    highest = max(best[row], block_best[row])
    old = np.float32(math.exp(best[row] - highest))
    new = np.float32(math.exp(block_best[row] - highest))
    below[row] = below[row] * old + block_below[row] * new
    best[row] = highest
    for d in range(row * width, row * width + width):
        result[d] = result[d] * old + here[d] * new


@inner
def _give(result, at, dim, below, out, to):
    for d in range(dim):
        out[to + d] = result[at + d] / below


@inner
def _begin(best, below, slots, rows, first_row, sinks, head, share):
    """Nothing seen yet but a query head's own logit among `sinks`, whose value is nothing; they are
    empty where there are none."""
    for slot in range(slots):
        best[slot], below[slot] = NOTHING, np.float32(0)
        if len(sinks):
            best[slot] = sinks[(head + slot // rows) * share + (first_row + slot % rows) % share]
            below[slot] = np.float32(1)


@pasted
def _scores(
    queries, rows, width, k, v, head, members, heads, dim, value_dim, table, table_at, page_size,
    block, begin, end, scores,
):  # fmt: skip
    """Scores of keys `begin` … `end` of a block; their values are asked for on the way."""
    line, key = 64 // k.itemsize, begin
    while key < end:  # a page's keys lie evenly: where they do is asked once
        count = min(page_size - key % page_size, end - key)
        at = _slot(table, table_at, page_size, key) * heads + head
        for place in range(key - block, key - block + count):
            _fetch(v, at * value_dim, members * value_dim, line)
            for m in range(members):
                _score(
                    queries, m * rows * width, width, rows, k, (at + m) * dim, dim,
                    scores, m * rows * BLOCK + place,
                )  # fmt: skip
            at += heads
        key += count


@inner
def attend(
    q, q_at, q_step, share, first_row, rows, start,
    k, v, head, members, heads, dim, value_dim, table, table_at, page_size,
    scale, window, softcap, sinks, out, out_at, out_step, work, work_at,
):  # fmt: skip
    """`members` key/value heads from `head` on, for rows `first_row` … of one sequence.

    Row i of a head is token i // share, query head i % share of its group. Token 0 stands at
    `start`; `q_at` and `out_at` point at its first head, `_step` leads to the next token.
    `members · rows` is at most ROWS; `work` needs `room(dim, value_dim)` floats; see `_begin`.
    """
    width, value_width = (dim + 15) // 16 * 16, (value_dim + 15) // 16 * 16
    queries, scores = part(work, work_at), part(work, work_at + ROWS * width)
    at = work_at + ROWS * (width + BLOCK)
    here, result = part(work, at), part(work, at + ROWS * value_width)
    best = part(work, at + 2 * ROWS * value_width)
    below, block_best, block_below = part(best, ROWS), part(best, 2 * ROWS), part(best, 3 * ROWS)
    slots = members * rows
    for slot in range(slots):
        from_ = q_at + _place(first_row + slot % rows, slot // rows, share, q_step, dim)
        query = part(q, from_)
        for d in range(dim):
            queries[slot * width + d] = query[d] * scale
    _begin(best, below, slots, rows, first_row, sinks, head, share)
    _fill(result, 0, slots * value_width, np.float32(0))
    top = start + (first_row + rows - 1) // share + 1
    low = max(0, start + first_row // share - window + 1) if window > 0 else 0
    for block in range(low // BLOCK * BLOCK, top, BLOCK):
        end, begin = min(block + BLOCK, top), max(block, low)
        _scores(
            queries, rows, width, k, v, head, members, heads, dim, value_dim, table, table_at,
            page_size, block, begin, end, scores,
        )  # fmt: skip
        lanes = (end - block + LANES - 1) // LANES * LANES
        for slot in range(slots):
            position = start + (first_row + slot % rows) // share
            first = max(begin, position - window + 1) if window > 0 else begin
            first, last = min(first, end) - block, min(end, position + 1) - block
            last = max(first, last)
            _soften(scores, slot, lanes, first, last, softcap, block_best, block_below)
        _fill(here, 0, slots * value_width, np.float32(0))
        key = begin
        while key < end:
            count = min(page_size - key % page_size, end - key)
            at = (_slot(table, table_at, page_size, key) * heads + head) * value_dim
            for m in range(members):
                _weigh(
                    scores, m * rows * BLOCK + key - block, rows, v, at + m * value_dim,
                    heads * value_dim, value_dim, count, here, m * rows * value_width, value_width,
                )  # fmt: skip
            key += count
        for slot in range(slots):
            if block_below[slot] > 0:
                _merge(best, below, block_best, block_below, slot, result, here, value_width)
    for slot in range(slots):
        to = out_at + _place(first_row + slot % rows, slot // rows, share, out_step, value_dim)
        _give(result, slot * value_width, value_dim, below[slot], out, to)
