"""The step's attention over views: a token's own block and the blocks seen before it (numba).

A task is one token and a few key/value heads. For each block in view its queries are turned by the
block's shift, the keys are walked once, and the partial result is merged into the token's by
log-sum-exp. Compiled by itself, when first asked for; the step calls it by address.
"""

import math

import numpy as np

from engine.kernels.compiled import body, inner
from engine.kernels.paged_attention.partial_cpu import BLOCK, NOTHING, attend_run, room
from engine.kernels.rotary.halves_cpu import rotate_head
from engine.kernels.rows import part


def numbers(queries: int) -> int:
    """Integers of scratch one thread needs."""
    return 2 * BLOCK + 4 * queries


def scratch(queries: int, dim: int) -> int:
    """Floats of scratch one thread needs for `queries` query rows at once."""
    return room(queries, dim) + 2 * queries * dim + 2 * -(-queries // 16) * 16


@inner
def _add(out, out_at, best, more, more_lse, queries, dim):
    """Merge a partial result into the running one; no keys (lse -∞) change nothing."""
    for row in range(queries):
        if more_lse[row] == NOTHING:
            continue
        highest = max(best[row], more_lse[row])
        old = np.float32(math.exp(best[row] - highest))
        new = np.float32(math.exp(more_lse[row] - highest))
        total = old + new
        best[row] = highest + np.float32(math.log(total))
        old, new = old / total, new / total
        here, there = part(out, out_at + row * dim), part(more, row * dim)
        for d in range(dim):
            here[d] = here[d] * old + there[d] * new


@body
def attend(task, layer, shape, windows, inputs, buffers, keys, values, thread):
    """One task: token `task // groups`, heads of group `task % groups`."""
    H, G, D = shape.heads, shape.kv_heads, shape.dim
    share, groups = H // G, (G + inputs.members - 1) // inputs.members
    token, head = task // groups, task % groups * inputs.members
    members = min(inputs.members, G - head)
    queries, position = members * share, np.int64(inputs.positions[token])
    wide = ((H + 2 * G) * D + 15) // 16 * 16
    q_at, out_at = token * wide + head * share * D, token * H * D + head * share * D
    turned = part(inputs.scratch, thread * inputs.scratch_size)
    more = part(turned, queries * D)
    lse = part(more, queries * D)
    best = part(lse, (queries + 15) // 16 * 16)
    work = part(best, (queries + 15) // 16 * 16)
    for row in range(queries):
        best[row] = NOTHING
    for i in range(out_at, out_at + queries * D):
        buffers.mixed[i] = np.float32(0)
    none = token * 0  # for a constant numba would compile `attend_run` once more
    sequence, window = np.int64(inputs.sequence[token]), windows[layer]
    first, last = np.int64(inputs.first_pairs[sequence]), np.int64(inputs.first_pairs[sequence + 1])
    for pair in range(first, last + 1):
        table, shift = inputs.table, np.int64(0)
        table_at, end = sequence * inputs.table_width, position + 1
        if pair < last:
            table, shift = inputs.block_table, np.int64(inputs.shifts[pair])
            table_at = np.int64(inputs.blocks[pair]) * inputs.block_width
            end = min(np.int64(inputs.seen[pair]), position + shift + 1)
        begin = max(np.int64(0), position + shift - window + 1) if window > 0 else np.int64(0)
        if begin >= end:
            continue
        for i in range(queries * D):
            turned[i] = buffers.qkv[q_at + i]
        if shift > 0:
            for row in range(queries):
                rotate_head(turned, row * D, D // 2, inputs.pure_turn, shift * D)
        attend_run(
            turned, none, share, keys, values, head, members, G, D, D, table, table_at,
            shape.page_size, begin, end, shape.scale, shape.softcap, more, none, lse, none,
            work, none, inputs.places, thread * inputs.places_size,
        )  # fmt: skip
        _add(buffers.mixed, out_at, best, more, lse, queries, D)
