"""The two causal products of gated linear attention, chunk by chunk (numba, one head a task).

A chunk is cut into sub-chunks. Decays are products of gates from one token to a later one, never
their reciprocals: each factor is at most 1, so the strongest gate underflows to 0 and nothing
overflows. Between sub-chunks decays are carried by matrix products (the second level of Yang et
al., arXiv 2312.06635); inside a sub-chunk they run along with the key.
"""

from functools import cache

import numpy as np
from numba import prange

from engine.kernels.compiled import address, body, call, inner, kernel
from engine.kernels.lanes import LANES
from engine.kernels.rows import dots, exponentials
from engine.kernels.tile import tile

ROWS = 8
_one, _two = tile(ROWS, 1), tile(ROWS, 2)
_dot = dots(1)


@body
def product(x, x_at, x_stride, rows, w, w_at, w_stride, depth, width, y, y_at, y_stride):
    """y += x · w; `rows` a multiple of 8, `width` of 16; all row-major, offsets in elements."""
    for r in range(0, rows, ROWS):
        x_row, y_row = x_at + r * x_stride, y_at + r * y_stride
        p = 0
        while p + 2 * LANES <= width:
            _two(
                x, x_row, x_stride, ROWS, w, w_at + p, w_stride, LANES,
                depth, y, y_row + p, y_stride,
            )  # fmt: skip
            p += 2 * LANES
        if p < width:
            _one(
                x, x_row, x_stride, ROWS, w, w_at + p, w_stride, LANES,
                depth, y, y_row + p, y_stride,
            )  # fmt: skip


@cache
def product_address() -> int:
    """Where `product` lies: called by address, it is compiled once and not at each of its calls."""
    some, at = np.empty((1, 1), np.float32), np.int64(0)
    return address(product, some, at, at, at, some, at, at, at, at, some, at, at)


@inner
def fetch_rows(source, start, count, out):
    """The rows of one chunk, zeros after the last token."""
    for t in range(count):
        for d in range(out.shape[1]):
            out[t, d] = source[start + t, d]
    for t in range(count, out.shape[0]):
        for d in range(out.shape[1]):
            out[t, d] = 0.0


@inner
def store_rows(rows, count, out, start):
    """The first `count` rows go to `out[start]` on."""
    for t in range(count):
        for d in range(out.shape[1]):
            out[start + t, d] = rows[t, d]


@inner
def fill(x, value):
    """Every element of a matrix becomes `value`."""
    for t in range(x.shape[0]):
        for d in range(x.shape[1]):
            x[t, d] = value


@inner
def weigh(x, by):
    """x = x · by, element by element."""
    for t in range(x.shape[0]):
        for d in range(x.shape[1]):
            x[t, d] *= by[t, d]


@inner
def decays(gate, start, count, sub, step, before, after, through):
    """Decay factors of one chunk: of a token, into it and out of it in its sub-chunk.

    `step[t]` = exp(gate); `before[t]` = product from its sub-chunk's first token to t; `after[t]` =
    product from t + 1 to its sub-chunk's last; `through[j]` = product over sub-chunk j.
    """
    chunk, width = step.shape
    fetch_rows(gate, start, count, step)
    exponentials(step, 0, chunk * width // LANES, np.float32(0.0))
    for first in range(0, chunk, sub):
        for d in range(width):
            before[first, d] = step[first, d]
            after[first + sub - 1, d] = 1.0
        for t in range(first + 1, first + sub):
            for d in range(width):
                before[t, d] = before[t - 1, d] * step[t, d]
        for t in range(first + sub - 2, first - 1, -1):
            for d in range(width):
                after[t, d] = after[t + 1, d] * step[t + 1, d]
        for d in range(width):
            through[first // sub, d] = before[first + sub - 1, d]


@inner
def transposed(x, out):
    """out = xᵀ."""
    for t in range(x.shape[0]):
        for d in range(x.shape[1]):
            out[d, t] = x[t, d]


@inner
def scale_rows(x, first, count, by):
    """Each of `count` rows of x is multiplied by `by`, element by element."""
    for t in range(first, first + count):
        for d in range(x.shape[1]):
            x[t, d] *= by[d]


@inner
def near_scores(q, k, step, first, sub, running, scores):
    """Scores inside one sub-chunk, the decay walking along with each key."""
    width = q.shape[1]
    for s in range(first, first + sub):
        for d in range(width):
            running[d] = k[s, d]
        for t in range(s, first + sub):
            if t > s:
                for d in range(width):
                    running[d] *= step[t, d]
            _dot(
                q, t * width, width, running, 0, width // LANES,
                scores, (t - first) * scores.shape[1] + s, 0,
            )  # fmt: skip


@inner
def near_values(scores, z, step, first, sub, running, rows):
    """Adds to `rows` what earlier values of one sub-chunk give, the decay walking along."""
    width = z.shape[1]
    for s in range(sub):
        for d in range(width):
            running[d] = z[first + s, d]
        for t in range(s + 1, sub):
            for d in range(width):
                running[d] *= step[first + t, d]
            for d in range(width):
                rows[t, d] += scores[t, s] * running[d]


@inner
def _keys_gated_head(multiply, q, k, v, gate, state, chunk, sub, o):
    time, width = q.shape
    wide = v.shape[1]
    step = np.empty((chunk, width), np.float32)
    before, after = np.empty_like(step), np.empty_like(step)
    through = np.empty((chunk // sub, width), np.float32)
    q_chunk, k_chunk = np.empty_like(step), np.empty_like(step)
    v_chunk = np.empty((chunk, wide), np.float32)
    keys = np.empty((width, chunk), np.float32)
    scores = np.empty((sub, chunk), np.float32)
    running = np.empty(width, np.float32)
    rows = np.empty((sub, wide), np.float32)
    for start in range(0, time, chunk):
        count = min(chunk, time - start)
        decays(gate, start, count, sub, step, before, after, through)
        fetch_rows(q, start, count, q_chunk)
        fetch_rows(k, start, count, k_chunk)
        fetch_rows(v, start, count, v_chunk)
        weigh(after, k_chunk)
        transposed(after, keys)
        weigh(before, q_chunk)
        for i in range((count + sub - 1) // sub):
            first = i * sub
            fill(scores, np.float32(0.0))
            fill(rows, np.float32(0.0))
            near_scores(q_chunk, k_chunk, step, first, sub, running, scores)
            for j in range(i - 1, -1, -1):
                call(multiply, (
                    before, first * width, width, sub, keys, j * sub, chunk, width, sub,
                    scores, j * sub, chunk,
                ))  # fmt: skip
                scale_rows(before, first, sub, through[j])
            call(
                multiply,
                (scores, 0, chunk, sub, v_chunk, 0, wide, first + sub, wide, rows, 0, wide),
            )
            call(
                multiply,
                (before, first * width, width, sub, state, 0, wide, width, wide, rows, 0, wide),
            )
            store_rows(rows, min(sub, count - first), o, start + first)
        for d in range(width):
            running[d] = 1.0
        for j in range(chunk // sub - 1, -1, -1):
            for d in range(width):
                for s in range(j * sub, j * sub + sub):
                    keys[d, s] *= running[d]
                running[d] *= through[j, d]
        for d in range(width):
            for e in range(wide):
                state[d, e] *= running[d]
        call(multiply, (keys, 0, chunk, width, v_chunk, 0, wide, chunk, wide, state, 0, wide))


@inner
def _values_gated_head(multiply, x, w, z, gate, state, chunk, sub, y):
    time, width = z.shape
    wide = x.shape[1]
    step = np.empty((chunk, width), np.float32)
    before, after = np.empty_like(step), np.empty_like(step)
    through = np.empty((chunk // sub, width), np.float32)
    x_chunk = np.empty((chunk, wide), np.float32)
    w_chunk, z_chunk = np.empty_like(x_chunk), np.empty_like(step)
    keys = np.empty((wide, chunk), np.float32)
    scores = np.empty((sub, sub), np.float32)
    running = np.empty(width, np.float32)
    rows = np.empty((sub, width), np.float32)
    for start in range(0, time, chunk):
        count = min(chunk, time - start)
        decays(gate, start, count, sub, step, before, after, through)
        fetch_rows(x, start, count, x_chunk)
        fetch_rows(w, start, count, w_chunk)
        fetch_rows(z, start, count, z_chunk)
        transposed(w_chunk, keys)
        weigh(after, z_chunk)
        for i in range((count + sub - 1) // sub):
            first = i * sub
            fill(rows, np.float32(0.0))
            call(
                multiply,
                (x_chunk, first * wide, wide, sub, state, 0, width, wide, width, rows, 0, width),
            )
            for j in range(i):
                scale_rows(rows, 0, sub, through[j])
                fill(scores, np.float32(0.0))
                call(multiply, (
                    x_chunk, first * wide, wide, sub, keys, j * sub, chunk, wide, sub,
                    scores, 0, sub,
                ))  # fmt: skip
                call(multiply, (
                    scores, 0, sub, sub, after, j * sub * width, width, sub, width, rows, 0, width,
                ))  # fmt: skip
            fill(scores, np.float32(0.0))
            call(
                multiply,
                (x_chunk, first * wide, wide, sub, keys, first, chunk, wide, sub, scores, 0, sub),
            )
            for t in range(sub):
                for d in range(width):
                    rows[t, d] *= before[first + t, d]
            near_values(scores, z_chunk, step, first, sub, running, rows)
            store_rows(rows, min(sub, count - first), y, start + first)
        for d in range(width):
            running[d] = 1.0
        for j in range(chunk // sub - 1, -1, -1):
            scale_rows(after, j * sub, sub, running)
            for d in range(width):
                running[d] *= through[j, d]
        scale_rows(state, 0, wide, running)
        call(multiply, (keys, 0, chunk, wide, after, 0, width, chunk, width, state, 0, width))


@kernel
def keys_gated(multiply, q, k, v, gate, state, chunk, sub, o):
    """o_t = Σ_{s ≤ t} (q_t ⊙ decay(s → t)) · k_s v_s; `state` becomes the last. Heads by task."""
    for head in prange(q.shape[0]):
        _keys_gated_head(
            multiply, q[head], k[head], v[head], gate[head], state[head], chunk, sub, o[head]
        )


@kernel
def values_gated(multiply, x, w, z, gate, state, chunk, sub, y):
    """y_t = Σ_{s < t} (x_t · w_s) z_s ⊙ decay(s → t); `state` becomes the last. Heads by task."""
    for head in prange(x.shape[0]):
        _values_gated_head(
            multiply, x[head], w[head], z[head], gate[head], state[head], chunk, sub, y[head]
        )
