"""Attention backward (numba): gradients of keys and values a block of keys a task, gradients of
queries a block of queries a task; each recomputes its scores from the saved log-sum-exp.

After Dao, FlashAttention-2, arXiv 2307.08691, with the queries' gradients in a pass of
their own instead of sums that many tasks add to, so that results do not depend on who came first.
Seven products instead of five, and no scratch that grows with the sequence.
"""

import math

import numpy as np

from engine.kernels.attention.arguments import KEYS
from engine.kernels.attention.forward_cpu import NOTHING, fill, hide, is_edge, seen, turn
from engine.kernels.attention.product_cpu import BLOCK, product
from engine.kernels.attention.softmax_cpu import weigh_columns, weigh_rows
from engine.kernels.claims import claim
from engine.kernels.compiled import inner, serial
from engine.kernels.lanes import LANES, LOG2_E
from engine.kernels.rows import part

ONE, ZERO = np.float32(1), np.float32(0)


def room(dim: int, value_dim: int) -> int:
    """Floats of scratch one thread needs, for either pass."""
    return 2 * BLOCK * (dim + value_dim + KEYS + 1)


@inner
def _cap(s, dp, rows, cap, lse, delta, across):
    """Cap scores as forward does, and turn `dp` into what gives the uncapped scores' gradient."""
    for row in range(rows):
        for column in range(BLOCK):
            i = row * BLOCK + column
            below = delta[row if across else column]
            bent = np.float32(math.tanh(s[i] / cap))
            s[i] = bent * cap
            dp[i] = below + (dp[i] - below) * (ONE - bent * bent)


@inner
def _scatter(x, rows, dim, scale, out, at, stride):
    """out[r, d] = scale · x[d, r]: a block back from the lanes."""
    for r in range(rows):
        for d in range(dim):
            out[at + r * stride + d] = x[d * BLOCK + r] * scale


@inner
def query_gradients(sequence, head, first, given, shape, do, lse, delta, dq, work, work_at):
    """dq of queries first … first + BLOCK of one head. `lse` (in log 2) and `delta` are [H, T]."""
    H, G, D, E = shape.heads, shape.kv_heads, shape.dim, shape.value_dim
    token, source = given.query_start[sequence] + first, given.key_start[sequence]
    queries = given.query_start[sequence + 1] - given.query_start[sequence]
    keys = given.key_start[sequence + 1] - source
    rows, position = min(BLOCK, queries - first), first + keys - queries
    turned, result = part(work, work_at), part(work, work_at + BLOCK * D)
    turned_do = part(work, work_at + 2 * BLOCK * D)
    scores = part(work, work_at + BLOCK * (2 * D + E))
    slopes = part(scores, BLOCK * KEYS)
    column = part(slopes, BLOCK * KEYS)  # lse, then delta, by lane
    turn(given.q, (token * H + head) * D, H * D, rows, D, shape.scale, turned, 0)
    turn(do, (token * H + head) * E, H * E, rows, E, ONE, turned_do, 0)
    fill(column, 0, 2 * BLOCK, ZERO)
    at = head * (len(lse) // H) + token
    for r in range(rows):
        column[r], column[BLOCK + r] = lse[at + r], delta[at + r]
    fill(result, 0, D * BLOCK, ZERO)
    low, high = seen(position, rows, keys, shape.causal, shape.window)
    group = head // (H // G)
    for key in range(low, high, KEYS):
        count, at = min(KEYS, high - key), (source + key) * G + group
        product(given.k, at * D, G * D, 1, count, turned, 0, D, scores, 0, True)
        product(given.v, at * E, G * E, 1, count, turned_do, 0, E, slopes, 0, True)
        if shape.cap > 0:
            _cap(scores, slopes, count, shape.cap, column, part(column, BLOCK), False)
        if is_edge(position, rows, key, count, shape.causal, shape.window):
            hide(scores, key, count, position, shape.causal, shape.window)
        for lane in range(0, BLOCK, LANES):
            weigh_columns(scores, lane, slopes, lane, count, column, lane, column, BLOCK + lane)
        product(given.k, at * D, 1, G * D, D, slopes, 0, count, result, 0, False)
    scale = np.float32(shape.scale / LOG2_E)
    _scatter(result, rows, D, scale, dq, (token * H + head) * D, H * D)


@inner
def _hide_keys(s, row, count, key, position, causal, window):
    """As `hide`, where rows are queries from `row` on and the lanes are keys from `key` on."""
    for i in range(count):
        here = position + row + i - key  # the lane of the query's own key
        if causal:
            fill(s, i * BLOCK + min(max(here + 1, 0), BLOCK), i * BLOCK + BLOCK, NOTHING)
        if window > 0:
            fill(s, i * BLOCK, i * BLOCK + min(max(here + 1 - window, 0), BLOCK), NOTHING)


@inner
def key_gradients(sequence, group, first, given, shape, do, lse, delta, dk, dv, work, work_at):
    """dk and dv of keys first … first + BLOCK of one key head, over all query heads it serves."""
    H, G, D, E = shape.heads, shape.kv_heads, shape.dim, shape.value_dim
    token, source = given.query_start[sequence], given.key_start[sequence] + first
    queries = given.query_start[sequence + 1] - token
    keys = given.key_start[sequence + 1] - given.key_start[sequence]
    rows, position = min(BLOCK, keys - first), keys - queries  # where query 0 stands
    turned, turned_v = part(work, work_at), part(work, work_at + BLOCK * D)
    result, result_v = part(turned_v, BLOCK * E), part(turned_v, BLOCK * (E + D))
    scores = part(result_v, BLOCK * E)
    slopes = part(scores, BLOCK * KEYS)
    turn(given.k, (source * G + group) * D, G * D, rows, D, shape.scale, turned, 0)
    turn(given.v, (source * G + group) * E, G * E, rows, E, ONE, turned_v, 0)
    fill(result, 0, (D + E) * BLOCK, ZERO)
    low, high = 0, queries
    if shape.causal:
        low = min(max(first - position, 0), queries)
    if shape.window > 0:
        high = max(low, min(queries, first + rows - 1 + shape.window - position))
    for head in range(group * (H // G), (group + 1) * (H // G)):
        for row in range(low, high, KEYS):
            count, at = min(KEYS, high - row), (token + row) * H + head
            product(given.q, at * D, H * D, 1, count, turned, 0, D, scores, 0, True)
            product(do, at * E, H * E, 1, count, turned_v, 0, E, slopes, 0, True)
            line = head * (len(lse) // H) + token + row
            if shape.cap > 0:
                _cap(scores, slopes, count, shape.cap, lse, part(delta, line), True)
            if is_edge(position + row, count, first, rows, shape.causal, shape.window):
                _hide_keys(scores, row, count, first, position, shape.causal, shape.window)
            for lane in range(0, BLOCK, LANES):
                weigh_rows(scores, lane, slopes, lane, count, lse, line, delta, line)
            product(do, at * E, 1, H * E, E, scores, 0, count, result_v, 0, False)
            product(given.q, at * D, 1, H * D, D, slopes, 0, count, result, 0, False)
    scale = np.float32(shape.scale / LOG2_E)
    _scatter(result, rows, D, scale, dk, (source * G + group) * D, G * D)
    _scatter(result_v, rows, E, ONE, dv, (source * G + group) * E, G * E)


@serial
def backward_keys(tasks, given, shape, results, work, work_at, counters):
    """Claim tasks, each [sequence, key head, first key], until none is left.

    `results`: do, lse (in log 2) and delta by head, read; dq, dk, dv, of which dk and dv written.
    """
    do, lse, delta, _, dk, dv = results
    task = claim(counters, 0)
    while task < len(tasks):
        key_gradients(
            tasks[task, 0], tasks[task, 1], tasks[task, 2], given, shape, do, lse, delta, dk, dv,
            work, work_at,
        )  # fmt: skip
        task = claim(counters, 0)


@serial
def backward_queries(tasks, given, shape, results, work, work_at, counters):
    """Claim tasks, each [sequence, head, first query], until none is left; writes dq."""
    do, lse, delta, dq, _, _ = results
    task = claim(counters, 0)
    while task < len(tasks):
        query_gradients(
            tasks[task, 0], tasks[task, 1], tasks[task, 2], given, shape, do, lse, delta, dq,
            work, work_at,
        )  # fmt: skip
        task = claim(counters, 0)
