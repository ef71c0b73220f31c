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
from engine.kernels.compiled import body, inner
from engine.kernels.lanes import LANES, LOG2_E
from engine.kernels.rows import part

NOTHING = np.float32(-np.inf)


def room(dim: int, value_dim: int, keys: int = KEYS) -> int:
    """Floats of scratch one thread needs; `keys` between two looks at the maximum."""
    return BLOCK * (dim + keys + value_dim + 3)


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
def attend(sequence, head, first, given, shape, out, lse, work, work_at):
    """Queries first … first + BLOCK of one head of one sequence."""
    H, G, D, E = shape.heads, shape.kv_heads, shape.dim, shape.value_dim
    token, source = given.query_start[sequence] + first, given.key_start[sequence]
    queries = given.query_start[sequence + 1] - given.query_start[sequence]
    keys = given.key_start[sequence + 1] - source
    rows, position = min(BLOCK, queries - first), first + keys - queries
    turned, scores = part(work, work_at), part(work, work_at + BLOCK * D)
    result = part(work, work_at + BLOCK * (D + shape.keys))
    running = part(work, work_at + BLOCK * (D + shape.keys + E))
    turn(given.q, (token * H + head) * D, H * D, rows, D, shape.scale, turned, 0)
    fill(result, 0, E * BLOCK, np.float32(0))
    fill(running, 0, BLOCK, NOTHING)
    fill(running, BLOCK, 3 * BLOCK, np.float32(0))
    low, high = seen(position, rows, keys, shape.causal, shape.window)
    group = head // (H // G)
    for key in range(low, high, shape.keys):
        count, at = min(shape.keys, high - key), (source + key) * G + group
        product(given.k, at * D, G * D, 1, count, turned, 0, D, scores, 0, True)
        if shape.cap > 0:
            cap_scores(scores, count, shape.cap)
        if is_edge(position, rows, key, count, shape.causal, shape.window):
            hide(scores, key, count, position, shape.causal, shape.window)
        for lane in range(0, BLOCK, LANES):
            soften(scores, lane, count, running, lane, BLOCK + lane, 2 * BLOCK + lane)
        if shape.rescale and key > low:
            for e in range(E):
                for r in range(BLOCK):
                    result[e * BLOCK + r] *= running[2 * BLOCK + r]
        product(given.v, at * E, 1, G * E, E, scores, 0, count, result, 0, False)
    _give(result, running, rows, token * H + head, H, E, out, lse)


@inner
def _give(result, running, rows, at, H, E, out, lse):
    """Divide by the sums, and write rows where they belong; a query that saw nothing gives 0."""
    for r in range(rows):
        below, row = running[BLOCK + r], at + r * H
        share = np.float32(1) / below if below > 0 else np.float32(0)
        for e in range(E):
            out[row * E + e] = result[e * BLOCK + r] * share
        lse[row] = (running[r] + math.log2(below)) / LOG2_E if below > 0 else NOTHING


@body
def forward(tasks, given, shape, results, work, work_at, counters):
    """Claim tasks, each [sequence, head, first query], until none is left; `results`: o, lse."""
    out, lse = results
    task = claim(counters, 0)
    while task < len(tasks):
        attend(
            tasks[task, 0], tasks[task, 1], tasks[task, 2], given, shape, out, lse, work, work_at
        )
        task = claim(counters, 0)
