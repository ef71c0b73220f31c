"""Attention forward, a block of queries of one head a task (numba): the tiled online softmax.

The block's queries stand in the lanes. For each block of keys: scores, powers of two, the running
result fades by what the maximum rose, weighted values are added; division by the sum comes once, at
the end (Dao, FlashAttention-2, arXiv 2307.08691).
"""

import math

import numpy as np

from engine.kernels.attention.arguments import KEYS
from engine.kernels.attention.product_cpu import BLOCK, product
from engine.kernels.attention.softmax_cpu import soften
from engine.kernels.claims import claim
from engine.kernels.compiled import inner, serial
from engine.kernels.lanes import LANES, LOG2_E
from engine.kernels.rows import part

NOTHING = np.float32(-np.inf)


def room(dim: int, value_dim: int, keys: int = KEYS, together: int = 1) -> int:
    """Floats of scratch one thread needs; `keys` between two looks at the maximum."""
    return BLOCK * (together * (dim + value_dim + 3) + keys) + keys * (dim + value_dim)


@inner
def fill(x, first, last, value):
    """x[first:last] = value."""
    for i in range(first, last):
        x[i] = value


@inner
def turn(x, at, stride, rows, dim, scale, out, out_at):
    """out[d, r] = scale · x[r, d] for `rows` rows, zeros beyond: a block with its rows in lanes."""
    for d in range(dim):
        to = part(out, out_at + d * BLOCK)
        for r in range(rows):
            to[r] = x[at + r * stride + d] * scale
        for r in range(rows, BLOCK):
            to[r] = np.float32(0)


@inner
def cap_scores(s, rows, cap):
    """s = cap · tanh(s / cap)."""
    for i in range(rows * BLOCK):
        s[i] = np.float32(math.tanh(s[i] / cap)) * cap


@inner
def hide(s, key, count, position, causal, window):
    """Scores of keys that a query does not see become -inf; the block's first query stands at
    `position`, rows of `s` are keys from `key` on."""
    for j in range(count):
        if causal:
            fill(s, j * BLOCK, j * BLOCK + min(max(key + j - position, 0), BLOCK), NOTHING)
        if window > 0:
            first = min(max(key + j - position + window, 0), BLOCK)
            fill(s, j * BLOCK + first, j * BLOCK + BLOCK, NOTHING)


@inner
def seen(position, rows, keys, causal, window):
    """First and last + 1 of the keys that any of `rows` queries from `position` on sees."""
    first = max(0, position - window + 1) if window > 0 else 0
    return first, max(first, min(keys, position + rows)) if causal else keys


@inner
def is_edge(position, rows, key, count, causal, window):
    """Whether some of these queries do not see some of these keys."""
    late = causal and key + count - 1 > position
    return late or (window > 0 and key <= position + rows - 1 - window)


@inner
def pack(x, at, stride, rows, dim, out):
    """Rows that lie `stride` apart, side by side: read once for several blocks of queries."""
    for r in range(rows):
        line, to = part(x, at + r * stride), part(out, r * dim)
        for d in range(dim):
            to[d] = line[d]


@inner
def attend(sequence, head, first, given, shape, out, lse, work, work_at):
    """Queries from `first` on of one head of one sequence: `shape.together` blocks of BLOCK.

    Several blocks share keys and values, packed as they are read: rows of one head lie so far apart
    that they drive each other out of the caches, and each block alone would wait for them anew.
    """
    H, G, D, E = shape.heads, shape.kv_heads, shape.dim, shape.value_dim
    token, source = given.query_start[sequence] + first, given.key_start[sequence]
    queries = given.query_start[sequence + 1] - given.query_start[sequence]
    keys = given.key_start[sequence + 1] - source
    rows, position = min(shape.together * BLOCK, queries - first), first + keys - queries
    size = BLOCK * (D + E + 3)  # of a block: its queries, result, and running maximum and sum
    scores = part(work, work_at + shape.together * size)
    packed_k = part(scores, BLOCK * shape.keys)
    packed_v = part(packed_k, shape.keys * D)
    for block in range(0, rows, BLOCK):
        own = part(work, work_at + block // BLOCK * size)
        at, some = ((token + block) * H + head) * D, min(BLOCK, rows - block)
        turn(given.q, at, H * D, some, D, shape.scale, own, 0)
        fill(own, BLOCK * D, BLOCK * (D + E), np.float32(0))
        fill(own, BLOCK * (D + E), BLOCK * (D + E + 1), NOTHING)
        fill(own, BLOCK * (D + E + 1), size, np.float32(0))
    low, high = seen(position, rows, keys, shape.causal, shape.window)
    group = head // (H // G)
    for key in range(low, high, shape.keys):
        count, at = min(shape.keys, high - key), (source + key) * G + group
        k, v, k_step, v_step = part(given.k, at * D), part(given.v, at * E), G * D, G * E
        if shape.together > 1:
            pack(k, 0, k_step, count, D, packed_k)
            pack(v, 0, v_step, count, E, packed_v)
            k, v, k_step, v_step = packed_k, packed_v, D, E
        for block in range(0, rows, BLOCK):
            own, here = part(work, work_at + block // BLOCK * size), position + block
            some = min(BLOCK, rows - block)
            begin, end = seen(here, some, keys, shape.causal, shape.window)
            if begin < key + count and key < end:
                _fold(
                    own, k, k_step, v, v_step, min(count, end - key), key, here, some, key > low,
                    shape, scores,
                )  # fmt: skip
    for block in range(0, rows, BLOCK):
        own = part(work, work_at + block // BLOCK * size)
        result, running = part(own, BLOCK * D), part(own, BLOCK * (D + E))
        _give(result, running, min(BLOCK, rows - block), (token + block) * H + head, H, E, out, lse)


@inner
def _fold(own, k, k_step, v, v_step, count, key, position, rows, later, shape, scores):
    """`count` keys from `key` on, folded into the result of one block of queries."""
    D, E = shape.dim, shape.value_dim
    result, running = part(own, BLOCK * D), part(own, BLOCK * (D + E))
    product(k, 0, k_step, 1, count, own, 0, D, scores, 0, True)
    if shape.cap > 0:
        cap_scores(scores, count, shape.cap)
    if is_edge(position, rows, key, count, shape.causal, shape.window):
        hide(scores, key, count, position, shape.causal, shape.window)
    for lane in range(0, BLOCK, LANES):
        soften(scores, lane, count, running, lane, BLOCK + lane, 2 * BLOCK + lane)
    if shape.rescale and later:
        for e in range(E):
            for r in range(BLOCK):
                result[e * BLOCK + r] *= running[2 * BLOCK + r]
    product(v, 0, 1, v_step, E, scores, 0, count, result, 0, False)


@inner
def _give(result, running, rows, at, H, E, out, lse):
    """Divide by the sums, and write rows where they belong; a query that saw nothing gives 0."""
    for r in range(rows):
        below, row = running[BLOCK + r], at + r * H
        share = np.float32(1) / below if below > 0 else np.float32(0)
        for e in range(E):
            out[row * E + e] = result[e * BLOCK + r] * share
        lse[row] = (running[r] + math.log2(below)) / LOG2_E if below > 0 else NOTHING


@serial
def forward(tasks, given, shape, results, work, work_at, counters):
    """Claim tasks, each [sequence, head, first query], until none is left; `results`: o, lse."""
    out, lse = results
    task = claim(counters, 0)
    while task < len(tasks):
        attend(
            tasks[task, 0], tasks[task, 1], tasks[task, 2], given, shape, out, lse, work, work_at
        )
        task = claim(counters, 0)
