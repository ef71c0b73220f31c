"""Decode attention of one sequence's newest token over a run of its keys (numba).

In come the query rows of a few key/value heads and a run of positions; out go the attention over
that run alone and its log-sum-exp (natural logarithm), which is all that merging needs. The bits
depend on where a run begins: for bits that depend on nothing, take `tasks_cpu`.
"""

import math

import numpy as np

from engine.kernels.compiled import body, inner, pasted
from engine.kernels.lanes import LANES, WIDE
from engine.kernels.matmul.panels_cpu import GROUP
from engine.kernels.paged_attention.gathered import scores, weighted
from engine.kernels.paged_attention.stream_cpu import WIDTHS, attend_stream, find, state
from engine.kernels.rows import exponentials, largest, part
from engine.kernels.stored import read

BLOCK = 64  # keys between two looks at the maximum
NOTHING = np.float32(-np.inf)

MOST = 8 if WIDE else 4  # queries at once: registers bound their sums
TALL = (GROUP + 1) // 2  # panels of eight queries' values: as many sums as of four
_score_one, _score_two, _score_four, _score_eight = (scores(rows) for rows in (1, 2, 4, 8))
_weigh_one, _weigh_two, _weigh_four = (weighted(rows, GROUP) for rows in (1, 2, 4))
_weigh_eight = weighted(8, TALL)
_weigh_panel = weighted(1, 1)


def room(rows: int, dim: int) -> int:
    """Floats of scratch one thread needs for `rows` queries at once."""
    size = rows * (dim + max(BLOCK + 3, state(dim)))
    return -(-size // LANES) * LANES


def numbers(rows: int) -> int:
    """Integers of scratch one thread needs for `rows` queries at once."""
    return 2 * BLOCK + 3 * rows


@pasted
def _score(q, q_at, rows, k, places, at, ahead, head, dim, count, out, to):
    """out[r · BLOCK + j] = q_r · k_j for 1, 2, 4 or 8 queries and a strip of keys."""
    whole = dim // LANES
    j = 0
    while j < count:
        here, then = at + j, ahead + j
        if rows == 8:
            _score_eight(q, q_at, dim, k, places, here, then, head, dim, whole, out, to + j, BLOCK)
            j += 2
        elif rows == 4:
            _score_four(q, q_at, dim, k, places, here, then, head, dim, whole, out, to + j, BLOCK)
            j += 4
        elif rows == 2:
            _score_two(q, q_at, dim, k, places, here, then, head, dim, whole, out, to + j, BLOCK)
            j += 8
        else:
            _score_one(q, q_at, dim, k, places, here, then, head, dim, whole, out, to + j, BLOCK)
            j += 16
    if whole * LANES < dim:
        for row in range(rows):
            for j in range(count):
                total = out[to + row * BLOCK + j]
                key = (places[at + j] + head) * dim
                for d in range(whole * LANES, dim):
                    total += q[q_at + row * dim + d] * read(k, key + d)
                out[to + row * BLOCK + j] = total


@pasted
def _weigh(p, p_at, rows, v, places, at, then, head, dim, count, old, old_at, out, to):
    """out_r = out_r · old_r + Σ_j p[r, j] · v_j for 1, 2, 4 or 8 queries and a strip of values."""
    d, panels = 0, TALL if rows == 8 else GROUP
    while dim - d >= panels * LANES:
        if rows == 8:
            _weigh_eight(
                p, p_at, BLOCK, v, places, at, then, head, dim, d, count, old, old_at, out, to, dim
            )
        elif rows == 4:
            _weigh_four(
                p, p_at, BLOCK, v, places, at, then, head, dim, d, count, old, old_at, out, to, dim
            )
        elif rows == 2:
            _weigh_two(
                p, p_at, BLOCK, v, places, at, then, head, dim, d, count, old, old_at, out, to, dim
            )
        else:
            _weigh_one(
                p, p_at, BLOCK, v, places, at, then, head, dim, d, count, old, old_at, out, to, dim
            )
        d += panels * LANES
    for row in range(rows):
        from_, to_row, column = p_at + row * BLOCK, to + row * dim, d
        while dim - column >= LANES:
            _weigh_panel(
                p, from_, BLOCK, v, places, at, then, head, dim, column, count, old, old_at + row,
                out, to_row, dim,
            )  # fmt: skip
            column += LANES
        for c in range(column, dim):
            total = out[to_row + c] * old[old_at + row]
            for j in range(count):
                total += p[from_ + j] * read(v, (places[at + j] + head) * dim + c)
            out[to_row + c] = total


@pasted
def _soften(scores, row, count, softcap, best, below, old):
    """Scores become weights under the new maximum; earlier weights are to shrink by `old`."""
    lanes = (count + LANES - 1) // LANES * LANES
    s = part(scores, row * BLOCK)
    if softcap > 0:
        for j in range(count):
            s[j] = np.float32(math.tanh(s[j] / softcap)) * softcap
    for j in range(count, lanes):
        s[j] = NOTHING
    highest = max(best[row], largest(scores, row * BLOCK, lanes // LANES))
    old[row] = np.float32(math.exp(best[row] - highest))
    total = exponentials(scores, row * BLOCK, lanes // LANES, highest)
    below[row] = below[row] * old[row] + total
    best[row] = highest


@inner
def _gather(members, share, groups, at):
    """Queries that go together: 8, 4, 2 or 1 on one key head. First query, how many, head of each.

    Eight read a key once for all, so that what comes next is asked for evenly in time.
    """
    count = 0
    for member in range(members):
        row = 0
        while row < share:
            rows = MOST
            while rows > share - row:
                rows //= 2
            groups[at + 3 * count] = member * share + row
            groups[at + 3 * count + 1], groups[at + 3 * count + 2] = rows, member
            row += rows
            count += 1
    return count


@inner
def _attend_blocks(
    q, q_at, share, k, v, head, members, heads, dim, value_dim, table, table_at, page_size,
    begin, end, scale, softcap, out, out_at, lse, lse_at, work, work_at, places, places_at,
):  # fmt: skip
    """As `attend_run`, for any shape: blocks of keys are scored, softened, their values weighed."""
    count = members * share
    weights, queries = part(work, work_at), part(work, work_at + count * BLOCK)
    best = part(queries, count * dim)
    below, old = part(best, count), part(best, 2 * count)
    for i in range(count * dim):
        queries[i] = q[q_at + i] * scale
    for row in range(count):
        best[row], below[row] = NOTHING, np.float32(0)
    for i in range(out_at, out_at + count * value_dim):
        out[i] = np.float32(0)
    here, groups_at = places_at, places_at + 2 * BLOCK
    groups = _gather(members, share, places, groups_at)
    # A token's heads lie side by side: a few tokens' keys of all heads before the next tokens'.
    strip = LANES if members > 1 else BLOCK
    first = min(BLOCK, end - begin)
    find(places, here, first, BLOCK, table, table_at, page_size, begin, heads)
    for block in range(begin, end, BLOCK):
        keys, left = min(BLOCK, end - block), min(BLOCK, end - block - BLOCK)
        then = 2 * places_at + BLOCK - here
        if left > 0:
            find(places, then, left, BLOCK, table, table_at, page_size, block + BLOCK, heads)
        for at in range(0, keys, strip):
            some = min(strip, keys - at)
            for i in range(groups_at, groups_at + 3 * groups, 3):
                row, rows, member = places[i], places[i + 1], places[i + 2]
                ahead = at + (then if left > 0 else here)
                _score(
                    queries, row * dim, rows, k, places, here + at, ahead, head + member, dim,
                    some, weights, row * BLOCK + at,
                )  # fmt: skip
        for row in range(count):
            _soften(weights, row, keys, softcap, best, below, old)
        for at in range(0, keys, strip):
            some = min(strip, keys - at)
            for i in range(groups_at, groups_at + 3 * groups, 3):
                row, rows, member = places[i], places[i + 1], places[i + 2]
                ahead = at + (then if left > 0 else here)
                _weigh(
                    weights, row * BLOCK + at, rows, v, places, here + at, ahead, head + member,
                    value_dim, some, old, row, out, out_at + row * value_dim,
                )  # fmt: skip
            for row in range(count):
                old[row] = np.float32(1)
        here = then
    for row in range(count):
        if below[row] > 0:
            lse[lse_at + row] = best[row] + np.float32(math.log(below[row]))
            for d in range(out_at + row * value_dim, out_at + (row + 1) * value_dim):
                out[d] /= below[row]
        else:
            lse[lse_at + row] = NOTHING


@body
def attend_run(
    q, q_at, share, k, v, head, members, heads, dim, value_dim, table, table_at, page_size,
    begin, end, scale, softcap, out, out_at, lse, lse_at, work, work_at, places, places_at,
):  # fmt: skip
    """Keys `begin` … `end` for the queries of `members` key/value heads from `head` on.

    `q_at`, `out_at` and `lse_at` point at the first of members · share queries, which follow each
    other. `work` needs `room` floats, `places` `numbers` integers. No keys: out 0, lse -∞.
    """
    if share == 1 and softcap == 0 and dim == value_dim and dim in WIDTHS:
        attend_stream(
            q, q_at, k, v, head, members, heads, dim, table, table_at, page_size, begin, end,
            scale, out, out_at, lse, lse_at, work, work_at, places, places_at,
        )  # fmt: skip
    else:
        _attend_blocks(
            q, q_at, share, k, v, head, members, heads, dim, value_dim, table, table_at, page_size,
            begin, end, scale, softcap, out, out_at, lse, lse_at, work, work_at, places, places_at,
        )  # fmt: skip
