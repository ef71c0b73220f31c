"""Local linear attention of a tile of queries, every system solved in one pass (numba).

A tile's weights stay in a thread's cache while conjugate gradients multiply with them; no matrix of
a query is formed. Rows are padded to 16 numbers, keys to a multiple of 16 tokens.
"""

import numpy as np
from numba import prange

from engine.kernels.compiled import call, inner, kernel
from engine.kernels.lanes import LANES
from engine.kernels.linear_attention.chunks import fill
from engine.kernels.rows import dots, exponentials, largest

_dot = dots(1)
TILE = 32  # queries, a multiple of 8


@inner
def dot_rows(x, y, width, out):
    """out[r] = x[r] · y[r]."""
    for r in range(x.shape[0]):
        _dot(x, r * width, width, y, r * width, width // LANES, out, r, 0)


@inner
def _weights(multiply, q, k_across, first, time, scale, near, p):
    """Softmax weights of the tile's queries; rows past the last token repeat it."""
    tile, width = near.shape
    keys = k_across.shape[1]
    seen = min(first + tile, time)
    across = (seen + LANES - 1) // LANES * LANES
    for r in range(tile):
        token = min(first + r, time - 1)
        for d in range(width):
            near[r, d] = q[token, d] * scale
    fill(p, np.float32(0.0))
    call(multiply, (near, 0, width, tile, k_across, 0, keys, width, across, p, 0, keys))
    for r in range(tile):
        for s in range(min(first + r, time - 1) + 1, across):
            p[r, s] = -np.inf
        top = largest(p, r * keys, across // LANES)
        whole = np.float32(1.0) / exponentials(p, r * keys, across // LANES, top)
        for s in range(across):
            p[r, s] *= whole
    return across


@inner
def _slopes(multiply, x, m, k_across, across, p, own, shift, out):
    """out = p · (own + (k - m)·x), the slope of every key, weighed."""
    tile, width = x.shape
    keys = k_across.shape[1]
    fill(out, np.float32(0.0))
    call(multiply, (x, 0, width, tile, k_across, 0, keys, width, across, out, 0, keys))
    dot_rows(x, m, width, shift)
    for r in range(tile):
        lift = own - shift[r]
        for s in range(across):
            out[r, s] = p[r, s] * (out[r, s] + lift)


@inner
def _solve(multiply, left, m, k, k_across, across, p, ridge, iterations, goal, weighed, z):
    """Conjugate gradients on z for right sides `left`, each row its own system."""
    tile, width = left.shape
    keys = k_across.shape[1]
    turned, direction = np.empty_like(left), left.copy()
    size, curved = np.empty(tile, np.float32), np.empty(tile, np.float32)
    shift = np.empty(tile, np.float32)
    dot_rows(left, left, width, size)
    enough = size * goal
    fill(z, np.float32(0.0))
    for _ in range(iterations):
        moving = False
        for r in range(tile):
            moving |= size[r] > enough[r]
        if not moving:
            break
        _slopes(multiply, direction, m, k_across, across, p, np.float32(0.0), shift, weighed)
        for r in range(tile):
            for d in range(width):
                turned[r, d] = ridge * direction[r, d]
        call(multiply, (weighed, 0, keys, tile, k, 0, width, across, width, turned, 0, width))
        dot_rows(direction, turned, width, curved)
        for r in range(tile):
            if size[r] > enough[r]:
                step = size[r] / curved[r]
                for d in range(width):
                    z[r, d] += step * direction[r, d]
                    left[r, d] -= step * turned[r, d]
        dot_rows(left, left, width, curved)
        for r in range(tile):
            if size[r] > enough[r]:
                turn = curved[r] / size[r]
                size[r] = curved[r]
                for d in range(width):
                    direction[r, d] = left[r, d] + turn * direction[r, d]


@inner
def _tile(multiply, q, k, k_across, v, first, time, scale, ridge, iterations, goal, o, z):
    width, wide, keys = q.shape[1], v.shape[1], k_across.shape[1]
    p, weighed = np.empty((TILE, keys), np.float32), np.empty((TILE, keys), np.float32)
    near, m = np.empty((TILE, width), np.float32), np.empty((TILE, width), np.float32)
    found, rows = np.empty((TILE, width), np.float32), np.empty((TILE, wide), np.float32)
    shift = np.empty(TILE, np.float32)
    across = _weights(multiply, q, k_across, first, time, scale, near, p)
    fill(m, np.float32(0.0))
    call(multiply, (p, 0, keys, TILE, k, 0, width, across, width, m, 0, width))
    for r in range(TILE):
        token = min(first + r, time - 1)
        for d in range(width):
            near[r, d] = q[token, d] - m[r, d]
    _solve(multiply, near, m, k, k_across, across, p, ridge, iterations, goal, weighed, found)
    _slopes(multiply, found, m, k_across, across, p, np.float32(1.0), shift, weighed)
    fill(rows, np.float32(0.0))
    call(multiply, (weighed, 0, keys, TILE, v, 0, wide, across, wide, rows, 0, wide))
    for r in range(min(TILE, time - first)):
        for e in range(wide):
            o[first + r, e] = rows[r, e]
        for d in range(width):
            z[first + r, d] = found[r, d]


@kernel
def attend(multiply, q, k, k_across, v, scale, ridge, iterations, goal, o, z):
    """Outputs o and solutions z of every query; a tile of a head's queries a task."""
    heads, time = q.shape[0], q.shape[1]
    tiles = (time + TILE - 1) // TILE
    for task in prange(heads * tiles):
        head, first = task % heads, task // heads * TILE
        _tile(
            multiply, q[head], k[head], k_across[head], v[head], first, time, scale, ridge,
            iterations, goal, o[head], z[head],
        )  # fmt: skip
