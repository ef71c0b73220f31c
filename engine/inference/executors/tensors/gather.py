"""Batch of a step: gathers its rows and threads into the arrays of one forward pass.

Shape letters: T new tokens, B sequences, S samples, R rows of logits, P pages.
"""

from dataclasses import replace

import numpy as np

from engine.inference.requests.rows import Rows
from engine.inference.requests.step import Step
from engine.inference.requests.view_sequences import NONE
from engine.kernels import row_batches
from engine.kernels.compiled import settled
from engine.kernels.drafts import trees
from engine.models.batch import Batch, States, in_slots

_ones = settled(row_batches.ones)


def gather(step: Step, scratch: int) -> tuple[Batch, np.ndarray]:
    """The batch, and for each sample the row of logits it is drawn from.

    Threads over views come last, before them padding: sequences of one token that write into page
    `scratch`.
    """
    if step.threads is None:
        return _rows(step, scratch)
    if not len(step.rows_B):
        return step.threads.batch, NONE
    batch, from_S = _rows(step, scratch)
    threads = step.threads.batch
    return beside(
        batch, slotted(threads, step.rows.page_size) if batch.by_slot else threads
    ), from_S


def beside(rows: Batch, threads: Batch) -> Batch:
    """One batch of both, rows first. A row sees its own pages alone; threads see what they saw."""
    count, tokens = len(rows.context_B), len(rows.tokens_T)
    wide = max(rows.block_table_BP.shape[1], threads.block_table_BP.shape[1])
    tables = [_widened(batch.block_table_BP, wide) for batch in (rows, threads)]
    views = threads.views
    if views is not None:
        views = replace(views, first_B1=np.append(np.zeros(count, np.int32), views.first_B1))
    paths_T = threads.paths_T
    if paths_T is not None:
        paths_T = np.append(np.zeros(tokens, np.int32), paths_T)
    return Batch(
        tokens_T=np.append(rows.tokens_T, threads.tokens_T),
        positions_T=np.append(rows.positions_T, threads.positions_T),
        slots_T=np.append(rows.slots_T, threads.slots_T),
        query_start_B1=np.append(rows.query_start_B1[:-1], threads.query_start_B1 + tokens),
        context_B=np.append(rows.context_B, threads.context_B),
        block_table_BP=np.concatenate(tables),
        logits_at_R=np.append(rows.logits_at_R, threads.logits_at_R + tokens),
        views=views,
        paths_T=paths_T,
        by_slot=rows.by_slot,
        vectors_NC=threads.vectors_NC,
    )


def slotted(batch: Batch, size: int) -> Batch:
    """The same with block tables of slots."""
    views = batch.views
    if views is not None:
        views = replace(views, table_KP=in_slots(views.table_KP, size))
    table_BP = in_slots(batch.block_table_BP, size)
    return replace(batch, block_table_BP=table_BP, views=views, by_slot=True)


def _widened(table_BP: np.ndarray, wide: int) -> np.ndarray:
    return np.pad(table_BP, ((0, 0), (0, wide - table_BP.shape[1])), constant_values=-1)


def _rows(step: Step, scratch: int) -> tuple[Batch, np.ndarray]:
    """The batch of the persistent batch's rows, and where each sample's logits will be."""
    rows, size = step.rows, step.rows.page_size
    if step.decodes == len(step.rows_B) and step.drafts_B is None:
        batch = one_each(rows, step.rows_B, step.starts_B)
        batch.logits_at_R = batch.query_start_B1[step.sample_from_S]
        from_S = np.arange(len(step.sample_from_S))
    else:
        batch = pack_rows(rows, step.rows_B, step.starts_B, step.queries_B)
        last_S = batch.query_start_B1[step.sample_from_S + 1] - 1
        if step.drafts_B is not None and step.ahead_S is not None:
            last_S = last_S - step.drafts_B[step.sample_from_S] + step.ahead_S
        if (last_S[1:] > last_S[:-1]).all():
            batch.logits_at_R, from_S = last_S, np.arange(len(last_S))
        else:
            batch.logits_at_R, from_S = np.unique(last_S, return_inverse=True)
        if step.parents_N is not None:
            _branch(step, batch)
        if step.canvases_C is not None:
            _see_both_ways(step, batch)
    batch.states = step.states
    if step.padding:
        pad(batch, step.padding, scratch, size)
    return batch, from_S


def _see_both_ways(step: Step, batch: Batch) -> None:
    """Let each token of a text with masks be a sequence of one, which sees the whole text: keys and
    values of all new tokens are written before any attends."""
    which_Q, queries_Q = step.apart()
    batch.query_start_B1 = np.append(0, np.cumsum(queries_Q)).astype(np.int32)
    batch.context_B = batch.context_B[which_Q]
    batch.block_table_BP = batch.block_table_BP[which_Q]


def _branch(step: Step, batch: Batch) -> None:
    """Let each draft of a tree be a sequence of one token, which sees the places of its path."""
    assert step.drafts_B is not None and step.parents_N is not None
    trunk_B = step.queries_B - step.drafts_B
    which_Q = np.repeat(np.arange(len(trunk_B)), step.drafts_B + 1)
    node_Q = np.arange(len(which_Q)) - (np.cumsum(step.drafts_B + 1) - step.drafts_B)[which_Q]
    known_Q = (step.starts_B + trunk_B)[which_Q]
    first_Q = (np.cumsum(step.drafts_B) - step.drafts_B)[which_Q]
    see(batch, step.rows, step.rows_B[which_Q], known_Q, node_Q, first_Q, step.parents_N)
    start_Q1 = np.zeros(len(which_Q) + 1, np.int32)
    np.cumsum(np.where(node_Q < 0, trunk_B[which_Q], 1), out=start_Q1[1:])
    drafts_Q = node_Q >= 0
    batch.positions_T[start_Q1[:-1][drafts_Q]] = batch.context_B[drafts_Q] - 1
    batch.query_start_B1 = start_Q1


def see(
    batch: Batch, rows: Rows, row_Q: np.ndarray, known_Q: np.ndarray, node_Q: np.ndarray,
    first_Q: np.ndarray, parents_N: np.ndarray,
) -> None:  # fmt: skip
    """Tell the batch's sequences by slots what they see; see `trees.seen`."""
    widest = int(known_Q.max(initial=0)) + int(node_Q.max(initial=0)) + 1
    slots_QW, context_Q = np.full((len(row_Q), widest), -1, np.int32), np.empty_like(row_Q)
    trees.seen(
        rows.tables, row_Q, known_Q, node_Q, first_Q, parents_N, rows.page_size, slots_QW, context_Q
    )
    batch.context_B, batch.block_table_BP = context_Q.astype(np.int32), slots_QW
    batch.by_slot = True


def one_each(rows: Rows, rows_B: np.ndarray, starts_B: np.ndarray) -> Batch:
    """The token at `starts_B[b]` of each of rows `rows_B`; logits are wanted of all."""
    size, count = rows.page_size, len(rows_B)
    table_BP = np.empty((count, int(starts_B.max()) // size + 1), np.int32)
    arrays_4B = np.empty((4, count), np.int32)
    # Its types are looked at once, so they are made sure of here.
    rows_B = np.ascontiguousarray(rows_B, np.int64)
    starts_B = np.ascontiguousarray(starts_B, np.int32)
    _ones(rows.tokens, rows.tables, rows_B, starts_B, size, arrays_4B, table_BP)
    tokens_T, positions_T, slots_T, context_B = arrays_4B
    start_B1 = np.arange(count + 1, dtype=np.int32)
    return Batch(
        tokens_T, positions_T, slots_T, start_B1, context_B, table_BP, logits_at_R=start_B1[:-1]
    )


def pack_rows(rows: Rows, rows_B: np.ndarray, starts_B: np.ndarray, queries_B: np.ndarray) -> Batch:
    """Tokens `starts_B[b] … starts_B[b] + queries_B[b]` of rows `rows_B`; no logits are wanted."""
    size, count = rows.page_size, len(rows_B)
    arrays_3T = np.empty((3, int(queries_B.sum())), np.int32)
    start_B1, context_B = np.empty(count + 1, np.int32), np.empty(count, np.int32)
    pages = -(-int((starts_B + queries_B).max()) // size)
    table_BP = np.empty((count, pages), np.int32)
    row_batches.pack(
        rows.tokens, rows.tables, rows_B, starts_B, queries_B, size, arrays_3T, start_B1,
        context_B, table_BP,
    )  # fmt: skip
    tokens_T, positions_T, slots_T = arrays_3T
    no_logits = NONE.astype(np.int32)
    return Batch(tokens_T, positions_T, slots_T, start_B1, context_B, table_BP, no_logits)


def pad(batch: Batch, count: int, scratch: int, page_size: int) -> None:
    """Add `count` one-token sequences that nobody reads."""
    zeros, last = np.zeros(count, np.int32), batch.query_start_B1[-1]
    table_CP = np.full((count, batch.block_table_BP.shape[1]), -1, np.int32)
    table_CP[:, 0] = scratch * page_size if batch.by_slot else scratch
    batch.tokens_T = np.concatenate([batch.tokens_T, zeros])
    batch.positions_T = np.concatenate([batch.positions_T, zeros])
    batch.slots_T = np.concatenate([batch.slots_T, zeros + scratch * page_size])
    starts = last + np.arange(1, count + 1, dtype=np.int32)
    batch.query_start_B1 = np.concatenate([batch.query_start_B1, starts])
    batch.context_B = np.concatenate([batch.context_B, zeros + 1])
    batch.block_table_BP = np.concatenate([batch.block_table_BP, table_CP])
    if batch.states is not None:  # from nothing to nowhere
        read_B, write_B = (np.append(x, zeros - 1) for x in batch.states[:2])
        batch.states = States(read_B, write_B, batch.states.keep_N3)


def last_tokens(step: Step, scratch: int) -> Batch:
    """A decode of each sequence's last new token again, writing where nobody reads."""
    rows, size, count = step.rows, step.rows.page_size, len(step.rows_B)
    context_B = step.starts_B + step.queries_B
    positions_B = context_B - 1
    return Batch(
        tokens_T=rows.tokens[step.rows_B, positions_B],
        positions_T=positions_B,
        slots_T=np.full(count, scratch * size, np.int32),
        query_start_B1=np.arange(count + 1, dtype=np.int32),
        context_B=context_B,
        block_table_BP=rows.tables[step.rows_B, : -(-int(context_B.max()) // size)],
        logits_at_R=np.zeros(0, np.int32),
    )


def last_of(batch: Batch, slot: int) -> Batch:
    """Each sequence's last new token of `batch` again, writing to `slot`, where nobody reads."""
    last_B, count = batch.query_start_B1[1:] - 1, len(batch.context_B)
    return replace(
        batch,
        tokens_T=batch.tokens_T[last_B],
        positions_T=batch.positions_T[last_B],
        slots_T=np.full(count, slot, np.int32),
        query_start_B1=np.arange(count + 1, dtype=np.int32),
        logits_at_R=np.zeros(0, np.int32),
        paths_T=None if batch.paths_T is None else batch.paths_T[last_B],
    )
