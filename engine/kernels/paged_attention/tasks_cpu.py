"""How paged attention is split into tasks, and the call from Python.

Shape letters: T new tokens, H query heads, G key/value heads, D key size, E value size,
B sequences, P pages of the longest sequence, S tokens of a page.
"""

from typing import NamedTuple

import numpy as np
import torch
from numba import get_num_threads, get_thread_id, prange
from torch import Tensor

from engine.kernels.compiled import inner, kernel
from engine.kernels.matmul.pack import aligned
from engine.kernels.operator import Variant
from engine.kernels.paged_attention.online_cpu import ROWS, attend, room

NO_SINKS = np.zeros(0, np.float32)


class Split(NamedTuple):
    """Per sequence: the number of its first task (at the end, of all) and the heads of a task."""

    first: np.ndarray  # int64 [B + 1]
    heads: np.ndarray  # int64 [B]


def split(query_start_B1: np.ndarray, share: int, kv_heads: int, threads: int) -> Split:
    """Few rows: heads go together, as their keys lie together; many rows or few tasks: one by one.

    How it is split changes no bit of the result.
    """
    rows_B = np.diff(query_start_B1).astype(np.int64) * share
    chunks_B = -(-rows_B // ROWS)
    together_B = np.clip(ROWS // np.maximum(rows_B, 1), 1, kv_heads)
    chunks = max(int(chunks_B.sum()), 1)
    # Tasks wanted of each chunk: one for each thread of a single one, whose heads are all alike.
    enough = -(-(threads if chunks == 1 else 4 * threads) // chunks)
    together_B = np.minimum(together_B, max(1, kv_heads // enough))
    tasks_B = chunks_B * -(-kv_heads // together_B)
    first = np.concatenate([[0], np.cumsum(tasks_B)]).astype(np.int64)
    return Split(first, together_B.astype(np.int64))


@inner
def attend_task(
    task, first_tasks, task_heads, q, q_step, H, k, v, G, D, E, page_size, table, table_width,
    start, context, scale, window, softcap, sinks, out, out_step, work, work_at,
):  # fmt: skip
    """One task: find its sequence, rows and heads, and attend."""
    low, high = 0, len(task_heads)
    while high - low > 1:
        middle = (low + high) // 2
        if first_tasks[middle] <= task:
            low = middle
        else:
            high = middle
    share, members = H // G, task_heads[low]
    groups = (G + members - 1) // members
    within = task - first_tasks[low]
    head, row = within % groups * members, within // groups * ROWS
    begin = np.int64(start[low])
    new = start[low + 1] - begin
    attend(
        q, begin * q_step + head * share * D, q_step, share, row, min(ROWS, new * share - row),
        context[low] - new, k, v, head, min(members, G - head), G, D, E,
        table, low * table_width, page_size, scale, window, softcap, sinks,
        out, begin * out_step + head * share * E, out_step, work, work_at,
    )  # fmt: skip


@kernel
def _attention(
    split, q, H, k, v, G, D, E, page_size, table, table_width, start, context,
    scale, window, softcap, sinks, out, work, room,
):  # fmt: skip
    for index in prange(split.first[-1]):
        attend_task(
            np.int64(index), split.first, split.heads, q, H * D, H, k, v, G, D, E, page_size,
            table, table_width, start, context, scale, window, softcap, sinks, out, H * E, work,
            np.int64(get_thread_id()) * room,
        )  # fmt: skip


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
    sinks_H: Tensor | None = None,
) -> Tensor:
    """o_THE in float32: each new token attends to its sequence up to itself.

    `context_B` counts a sequence's tokens with the new ones, which are its last. Pages are
    float32 or bfloat16, contiguous. `window` limits how many tokens a query sees (0: all),
    `softcap` bounds scores to ±softcap (0: none). `sinks_H`: a logit of each head that takes weight
    and gives nothing (gpt-oss, arXiv 2508.10925).
    """
    (T, H, D), (_, S, G, E) = q_THD.shape, v_PSGE.shape
    q = np.ascontiguousarray(q_THD.detach().float().numpy()).reshape(-1)
    table, start, context = (
        np.ascontiguousarray(a, np.int32) for a in (block_table_BP, query_start_B1, context_B)
    )
    out = np.empty(T * H * E, np.float32)
    if T:
        size, threads, sinks = room(D, E), get_num_threads(), NO_SINKS
        if sinks_H is not None:
            sinks = np.ascontiguousarray(sinks_H.detach().float().numpy())
        _attention(
            split(start, H // G, G, threads), q, H, flat(k_PSGD), flat(v_PSGE), G, D, E, S,
            table.reshape(-1), table.shape[1], start, context, np.float32(scale), window,
            np.float32(softcap), sinks, out, aligned(size * threads, np.float32), size,
        )  # fmt: skip
    return torch.from_numpy(out.reshape(T, H, E))


def flat(pages: Tensor) -> np.ndarray:
    """A cache tensor's memory as float32, bfloat16's bits as uint16 or e4m3's as uint8; no copy."""
    if pages.dtype == torch.float8_e4m3fn:
        return pages.detach().view(torch.uint8).view(-1).numpy()
    if pages.dtype == torch.bfloat16:
        return pages.detach().view(torch.int16).view(-1).numpy().view(np.uint16)
    return pages.detach().view(-1).numpy()


VARIANT = Variant(
    name="tasks_cpu",
    about="decode and prefill; a query's bits depend on neither batch nor chunk",
    device="cpu",
    call=paged_attention,
    dtypes=("float32", "bfloat16"),
    rank=3,
)
