"""Paged attention on the processor (numba): online softmax over blocks of keys.

A task is up to 16 query rows that share a key/value head; it walks the visible keys in blocks that
start at multiples of 256 positions: scores, softmax of the block, weighted values, then the block is
merged into the running result (Milakov and Gimelshein, arXiv 1805.02867). Blocks and lanes sit at
fixed positions, so a query's bits depend neither on the batch nor on how its prompt was chunked.
"""

import math

import numpy as np
import torch
from numba import get_num_threads, get_thread_id, prange
from torch import Tensor

from engine.kernels.compiled import inner, kernel
from engine.kernels.lanes import LANES
from engine.kernels.matmul.pack import aligned
from engine.kernels.matmul.panels_cpu import add_product
from engine.kernels.rows import dots, exponentials, largest, read

ROWS = 16  # query rows of a task
BLOCK = 256  # keys between merges
NOTHING = np.float32(-np.inf)

_dot_one, _dot_two, _dot_four = dots(1), dots(2), dots(4)


def room(dim: int, value_dim: int) -> int:
    """Floats of scratch one thread needs."""
    return ROWS * (_up(dim) + BLOCK + 2 * _up(value_dim)) + 4 * ROWS


def _up(dim: int) -> int:
    return -(-dim // LANES) * LANES


@inner
def _scores(q, q_width, rows, k, k_at, step, dim, count, out, out_at):
    """out[r, j] = q_r · k_j for `count` keys that lie `step` numbers apart."""
    vectors = dim // LANES
    for j in range(count):
        at = k_at + j * step
        row = 0
        while row < rows:
            q_at, to = row * q_width, out_at + row * BLOCK + j
            if rows - row >= 3:
                _dot_four(q, q_at, q_width, k, at, vectors, out, to, BLOCK)
            elif rows - row == 2:
                _dot_two(q, q_at, q_width, k, at, vectors, out, to, BLOCK)
            else:
                _dot_one(q, q_at, q_width, k, at, vectors, out, to, BLOCK)
            row += 4
        if vectors * LANES < dim:
            for row in range(rows):
                rest = np.float32(0)
                for d in range(vectors * LANES, dim):
                    rest += q[row * q_width + d] * read(k, at + d)
                out[out_at + row * BLOCK + j] += rest


@inner
def _weigh(p, p_at, rows, v, v_at, step, dim, count, out, out_at, width):
    """out[r] += Σ_j p[r, j] · v_j for `count` values that lie `step` numbers apart."""
    whole = dim // LANES
    add_product(
        p, p_at, BLOCK, rows, v, v_at, step, LANES, count, 0, whole, out, out_at, width
    )
    for row in range(rows):
        for d in range(whole * LANES, dim):
            total = out[out_at + row * width + d]
            for j in range(count):
                total += p[p_at + row * BLOCK + j] * read(v, v_at + j * step + d)
            out[out_at + row * width + d] = total


@inner
def _slot(table, table_at, page_size, key):
    return np.int64(table[table_at + key // page_size]) * page_size + key % page_size


@inner
def _soften(scores, row, lanes, first, last, softcap, best, below):
    """Softmax weights of one row of a block, not yet divided by their sum, which goes to `below`.

    Keys outside `first` … `last` (positions in the block) weigh nothing.
    """
    s = scores[row * BLOCK : row * BLOCK + lanes]
    if softcap > 0:
        for j in range(first, last):
            s[j] = np.float32(math.tanh(s[j] / softcap)) * softcap
    s[:first] = NOTHING
    s[last:] = NOTHING
    best[row] = largest(scores, row * BLOCK, lanes // LANES)
    if best[row] == NOTHING:
        s[:] = np.float32(0)
        below[row] = np.float32(0)
    else:
        below[row] = exponentials(scores, row * BLOCK, lanes // LANES, best[row])


@inner
def _merge(best, below, block_best, block_below, row, result, part, width):
    """Fold a block's weighted values into the running ones; the larger maximum rules."""
    highest = max(best[row], block_best[row])
    old = np.float32(math.exp(best[row] - highest))
    new = np.float32(math.exp(block_best[row] - highest))
    below[row] = below[row] * old + block_below[row] * new
    best[row] = highest
    for d in range(row * width, row * width + width):
        result[d] = result[d] * old + part[d] * new


@inner
def attend(
    q, q_at, q_step, share, first_row, rows, start,
    k, v, head, heads, dim, value_dim, table, table_at, page_size,
    scale, window, softcap, out, out_at, out_step, work, work_at,
):  # fmt: skip
    """Rows `first_row` … of a sequence and key/value head; row i is token i // share, head i % share.

    Token 0 stands at position `start`; `q_at` and `out_at` point at token 0's first head of the
    group, `_step` leads to the next token. `work` needs `room(dim, value_dim)` floats.
    """
    width, value_width = (dim + 15) // 16 * 16, (value_dim + 15) // 16 * 16
    at = work_at + ROWS * width
    queries, scores = work[work_at:at], work[at : at + ROWS * BLOCK]
    at += ROWS * BLOCK
    part, result = work[at : at + ROWS * value_width], work[at + ROWS * value_width :]
    at += 2 * ROWS * value_width
    best, below = work[at:], work[at + ROWS :]
    block_best, block_below = work[at + 2 * ROWS :], work[at + 3 * ROWS :]
    for row in range(rows):
        token, member = (first_row + row) // share, (first_row + row) % share
        query = q[q_at + token * q_step + member * dim :]
        for d in range(dim):
            queries[row * width + d] = query[d] * scale
        best[row], below[row] = NOTHING, np.float32(0)
    result[: rows * value_width] = np.float32(0)
    top = start + (first_row + rows - 1) // share + 1
    low = max(0, start + first_row // share - window + 1) if window > 0 else 0
    for block in range(low // BLOCK * BLOCK, top, BLOCK):
        end, begin = min(block + BLOCK, top), max(block, low)
        key = begin
        while key < end:
            count = min(page_size - key % page_size, end - key)
            at = (_slot(table, table_at, page_size, key) * heads + head) * dim
            _scores(queries, width, rows, k, at, heads * dim, dim, count, scores, key - block)
            key += count
        lanes = (end - block + LANES - 1) // LANES * LANES
        for row in range(rows):
            position = start + (first_row + row) // share
            first = max(begin, position - window + 1) if window > 0 else begin
            last = max(min(end, position + 1), first)
            first, last = min(first - block, lanes), min(last - block, lanes)
            _soften(scores, row, lanes, first, last, softcap, block_best, block_below)
        part[: rows * value_width] = np.float32(0)
        key = begin
        while key < end:
            count = min(page_size - key % page_size, end - key)
            at = (_slot(table, table_at, page_size, key) * heads + head) * value_dim
            step = heads * value_dim
            _weigh(scores, key - block, rows, v, at, step, value_dim, count, part, 0, value_width)
            key += count
        for row in range(rows):
            if block_below[row] > 0:
                _merge(best, below, block_best, block_below, row, result, part, value_width)
    for row in range(rows):
        token, member = (first_row + row) // share, (first_row + row) % share
        to = out_at + token * out_step + member * value_dim
        for d in range(value_dim):
            out[to + d] = result[row * value_width + d] / below[row]


@inner
def sequence_of(task_start, task):
    """Which sequence a task belongs to: the last whose first task is not after it."""
    low, high = 0, len(task_start) - 1
    while high - low > 1:
        middle = (low + high) // 2
        if task_start[middle] <= task:
            low = middle
        else:
            high = middle
    return low


@kernel
def _attention(
    q, H, k, v, G, D, E, page_size, table, table_width, start, context, task_start,
    scale, window, softcap, out, work, room,
):  # fmt: skip
    share = H // G
    tasks = task_start[-1] * G
    for task in prange(tasks):
        chunk, head = task // G, task % G
        b = sequence_of(task_start, chunk)
        new = start[b + 1] - start[b]
        row = (chunk - task_start[b]) * ROWS
        attend(
            q, (start[b] * H + head * share) * D, H * D, share, row, min(ROWS, new * share - row),
            context[b] - new, k, v, head, G, D, E, table, b * table_width, page_size,
            scale, window, softcap, out, (start[b] * H + head * share) * E, H * E,
            work, get_thread_id() * room,
        )  # fmt: skip


def first_tasks(query_start_B1: np.ndarray, share: int) -> np.ndarray:
    """Per sequence, how many tasks of one key/value head come before its own; then their total."""
    rows_B = np.diff(query_start_B1).astype(np.int64) * share
    return np.concatenate([[0], np.cumsum(-(-rows_B // ROWS))]).astype(np.int64)


def paged_attention(
    q_THD: Tensor,
    k_PSGD: Tensor,
    v_PSGE: Tensor,
    block_table_BP: Tensor | np.ndarray,
    query_start_B1: Tensor | np.ndarray,
    context_B: Tensor | np.ndarray,
    *,
    scale: float,
    window: int = 0,
    softcap: float = 0.0,
) -> Tensor:
    """o_THE in float32: each new token attends to its sequence up to itself.

    `context_B` counts a sequence's tokens with the new ones, which are its last. Pages are float32 or
    bfloat16, contiguous. `window` limits how many tokens a query sees (0: all), `softcap` bounds
    scores to ±softcap (0: none).
    """
    (T, H, D), (_, S, G, E) = q_THD.shape, v_PSGE.shape
    q = np.ascontiguousarray(q_THD.detach().float().numpy()).reshape(-1)
    table, start, context = (
        np.ascontiguousarray(a, np.int32) for a in (block_table_BP, query_start_B1, context_B)
    )
    out = np.empty(T * H * E, np.float32)
    if T:
        size = room(D, E)
        _attention(
            q, H, flat(k_PSGD), flat(v_PSGE), G, D, E, S, table.reshape(-1), table.shape[1],
            start, context, first_tasks(start, H // G), np.float32(scale), window,
            np.float32(softcap), out, aligned(size * get_num_threads(), np.float32), size,
        )  # fmt: skip
    return torch.from_numpy(out.reshape(T, H, E))


def flat(pages: Tensor) -> np.ndarray:
    """A cache tensor's memory as float32, or bfloat16's bits as uint16; not a copy."""
    if pages.dtype == torch.bfloat16:
        return pages.detach().view(torch.int16).view(-1).numpy().view(np.uint16)
    return pages.detach().view(-1).numpy()
