"""Runs a decode plan on this processor: workers are threads, items as planned, then the merges.

Shape letters as in `plan` and `tasks_cpu`; Q query heads.
"""

import math
import sys
import time
from functools import cache
from typing import NamedTuple

import numpy as np
import torch
from llvmlite import ir
from numba import get_num_threads, get_thread_id, prange, types
from numba.core import cgutils
from torch import Tensor

from engine.kernels.claims import STRIDE, claim
from engine.kernels.compiled import address, call, emitted, inner, kernel
from engine.kernels.lanes import INT32, INT64
from engine.kernels.matmul.pack import aligned
from engine.kernels.operator import Arguments
from engine.kernels.paged_attention.partial_cpu import attend_run, numbers, room
from engine.kernels.paged_attention.plan import Batch, Plan
from engine.kernels.paged_attention.split import Split
from engine.kernels.paged_attention.tasks_cpu import flat

CLOCK = getattr(time, "CLOCK_MONOTONIC", -1)  # absent on Windows: moments read 0 there

TILE = 256  # keys that are never cut


class Items(NamedTuple):
    """A plan's arrays, as the kernel takes them."""

    row: np.ndarray
    head: np.ndarray
    begin: np.ndarray
    end: np.ndarray
    part: np.ndarray
    first: np.ndarray  # of each piece, and after the last
    merge_row: np.ndarray
    merge_head: np.ndarray
    merge_parts: np.ndarray  # flat [M · 2]


class Trace(NamedTuple):
    """When each item and merge ran (seconds of the monotonic clock), and which worker did it."""

    item_I2: np.ndarray
    worker_I: np.ndarray
    merge_M2: np.ndarray
    merger_M: np.ndarray


@emitted
def _now(context):
    """Seconds of the system's monotonic clock."""
    signature = types.float64()

    def emit(target, b, signature, args):
        double = ir.DoubleType()
        if sys.platform == "win32" or CLOCK < 0:
            return ir.Constant(double, 0.0)
        moment = cgutils.alloca_once(b, ir.ArrayType(INT64, 2))
        kind = ir.FunctionType(INT32, [INT32, INT64.as_pointer()])
        read = cgutils.get_or_insert_function(b.module, kind, "clock_gettime")
        at = b.bitcast(moment, INT64.as_pointer())
        b.call(read, [ir.Constant(INT32, CLOCK), at])
        seconds, nanoseconds = (
            b.sitofp(b.load(b.gep(at, [ir.Constant(INT64, i)])), double) for i in range(2)
        )
        return b.fadd(seconds, b.fmul(nanoseconds, ir.Constant(double, 1e-9)))

    return signature, emit


@inner
def _merge(lse, o, first, last, heads, head, dim, rescale, out, out_at):
    """One query head of parts `first` … `last` into the output; an empty part weighs nothing."""
    highest = np.float32(-np.inf)
    for part in range(first, last):
        highest = max(highest, lse[part * heads + head])
    below = np.float32(0)
    for d in range(dim):
        out[out_at + d] = np.float32(0)
    for part in range(first, last):
        weight = np.float32(1)
        if rescale:
            weight = np.float32(math.exp(lse[part * heads + head] - highest))
        below += weight
        for d in range(dim):
            out[out_at + d] += weight * o[(part * heads + head) * dim + d]
    for d in range(dim):
        out[out_at + d] /= below


@kernel
def _decode(
    place, workers, items, members, token, q, H, k, v, G, D, E, page_size, table, table_width,
    scale, softcap, rescale, out, lse, part_o, part_lse, work, size, places, integers, counters,
    stamps, ran_on, merge_stamps, merged_on,
):  # fmt: skip
    share = H // G
    for index in prange(workers):
        worker, piece = np.int64(index), claim(counters, 0)
        while piece < len(items.first) - 1:
            for item in range(items.first[piece], items.first[piece + 1]):
                row, head, part = items.row[item], items.head[item], items.part[item]
                stamps[2 * item] = _now()
                whole = part < 0
                o, l = (out, lse) if whole else (part_o, part_lse)
                first = (token[row] if whole else part) * H + head * share
                call(
                    place,
                    (
                        q, (token[row] * H + head * share) * D, share, k, v, head,
                        min(members, G - head), G, D, E, table, row * table_width, page_size,
                        items.begin[item], items.end[item], scale, softcap,
                        o, first * E, l, first, work, worker * size, places, worker * integers,
                    ),
                )  # fmt: skip
                stamps[2 * item + 1] = _now()
                ran_on[item] = worker
            piece = claim(counters, 0)
    for index in prange(len(items.merge_row)):
        merge = np.int64(index)
        merge_stamps[2 * merge] = _now()
        row, head = items.merge_row[merge], items.merge_head[merge]
        for query in range(head * share, (head + min(members, G - head)) * share):
            _merge(
                part_lse, part_o, items.merge_parts[2 * merge], items.merge_parts[2 * merge + 1],
                H, query, E, rescale, out, (token[row] * H + query) * E,
            )  # fmt: skip
        merge_stamps[2 * merge + 1] = _now()
        merged_on[merge] = get_thread_id()


@cache
def _place(dtype: str) -> int:
    """Where `attend_run` for a cache of that dtype begins; compiles it if new."""
    floats, ints, longs = (np.zeros(1, kind) for kind in (np.float32, np.int32, np.int64))
    like = np.zeros(1, np.uint16 if dtype == "torch.bfloat16" else np.float32)
    one = np.float32(1)
    return address(
        attend_run, floats, 0, 1, like, like, 0, 1, 1, 1, 1, ints, 0, 1, 0, 0, one, one,
        floats, 0, floats, 0, floats, 0, longs, 0,
    )  # fmt: skip


def batch_of(
    kv_heads: int, query_start_B1: np.ndarray, context_B: np.ndarray, window: int, tile: int,
    members: int,
) -> tuple[np.ndarray, Batch]:  # fmt: skip
    """Which sequences have a new token, and what attention for it has to read."""
    row_N = np.flatnonzero(np.diff(query_start_B1))
    contexts = context_B[row_N].astype(np.int64)
    return row_N, Batch(contexts, kv_heads, tile, members, window)


def run_plan(
    made: Plan,
    q_THD: Tensor,
    k_PSGD: Tensor,
    v_PSGE: Tensor,
    block_table_NP: np.ndarray,
    token_N: np.ndarray,
    *,
    scale: float,
    softcap: float = 0.0,
    rescale: bool = True,
) -> tuple[Tensor, Trace]:
    """o_THE in float32, and when each item and merge ran.

    `block_table_NP` and `token_N` (each sequence's row in q) belong to the plan's sequences. Up to
    as many workers as there are threads run at once. `rescale=False` weighs partial results alike:
    wrong, and there to be seen.
    """
    (T, H, D), (_, S, G, E) = q_THD.shape, v_PSGE.shape
    q = np.ascontiguousarray(q_THD.detach().float().numpy()).reshape(-1)
    out, lse = np.zeros(T * H * E, np.float32), np.empty(T * H, np.float32)
    items = Items(
        made.row_I, made.head_I, made.begin_I, made.end_I, made.part_I, made.first_K1,
        made.row_M, made.head_M, made.parts_M2.reshape(-1),
    )  # fmt: skip
    rows = made.batch.members * (H // G)
    parts, size, integers = max(made.parts, 1), room(rows, D), numbers(rows)
    count, merges = len(made.row_I), len(made.row_M)
    trace = Trace(
        np.zeros((count, 2)),
        np.zeros(count, np.int64),
        np.zeros((merges, 2)),
        np.zeros(merges, np.int64),
    )
    table = np.ascontiguousarray(block_table_NP, np.int32)
    if count:
        _decode(
            _place(str(k_PSGD.dtype)),
            made.workers,
            items, made.batch.members, token_N.astype(np.int64),
            q, H, flat(k_PSGD), flat(v_PSGE), G, D, E, S, table.reshape(-1), table.shape[1],
            np.float32(scale), np.float32(softcap), rescale, out, lse,
            np.empty(parts * H * E, np.float32), np.empty(parts * H, np.float32),
            aligned(size * made.workers, np.float32), size,
            np.zeros(made.workers * integers, np.int64),
            integers, np.zeros(STRIDE, np.int64),
            trace.item_I2.reshape(-1), trace.worker_I, trace.merge_M2.reshape(-1), trace.merger_M,
        )  # fmt: skip
    return torch.from_numpy(out.reshape(T, H, E)), trace


def decode(
    split: Split,
    together: bool,
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
    """Paged attention (see `reference`) of at most one new token a sequence, split by `split`.

    `together`: a sequence's heads are one stream, as their keys lie side by side in a page.
    """
    start, context, table = (
        np.asarray(a, np.int32) for a in (query_start_B1, context_B, block_table_BP)
    )
    kv_heads = k_PSGD.shape[2]
    members = kv_heads if together else 1
    row_N, batch = batch_of(kv_heads, start, context, window, TILE, members)
    made = split.plan(batch, get_num_threads())
    o_THE, _ = run_plan(
        made, q_THD, k_PSGD, v_PSGE, table[row_N], start[row_N], scale=scale, softcap=softcap
    )
    return o_THE


def refuses(arguments: Arguments) -> str:
    """Decode only: more than one new token of a sequence is prefill."""
    start = arguments["query_start_B1"]
    most = max((int(b) - int(a) for a, b in zip(start[:-1], start[1:], strict=True)), default=0)
    return f"takes one new token a sequence, not {most}" if most > 1 else ""
