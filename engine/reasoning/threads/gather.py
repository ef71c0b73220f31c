"""From the threads of a step and what they see to the arrays of one forward pass.

Shape letters: T new tokens, B threads, N (thread, block) pairs.
"""

from collections.abc import Sequence

import numpy as np

from engine.cache.layouts import Sight, Tables
from engine.models.batch import Batch, Views
from engine.reasoning.threads.thread import Thread


def gather(
    threads: Sequence[Thread],
    views: Sequence[Sequence[Sight]],
    tables: Tables,
    page_size: int,
    turn_queries: bool = True,
) -> Batch:
    """The batch in which each thread writes its `feed`, whose room is in its block already.

    A view ends with the thread's own block. `turn_queries` False leaves every shift at zero, as if
    all blocks began where the own one does: the mistake that views exist to avoid.
    """
    tokens: list[int] = []
    positions: list[int] = []
    rows, lengths, contexts = [], [], []
    first, block, seen, shift = [0], [], [], []
    for thread, view in zip(threads, views, strict=True):
        own, count = view[-1], len(thread.feed)
        tokens += thread.feed
        positions += range(own.seen - count, own.seen)
        rows.append(own.block.row)
        lengths.append(count)
        contexts.append(own.seen)
        for sight in view[:-1]:
            if sight.seen:
                block.append(sight.block.row)
                seen.append(sight.seen)
                shift.append(own.begin - sight.begin if turn_queries else 0)
        first.append(len(block))
    table = tables.array[:, : tables.width]
    positions_T = np.array(positions, np.int32)
    row_T = np.repeat(np.array(rows, np.int32), lengths)
    path_B = np.array([thread.path for thread in threads], np.int32)
    start_B1 = np.zeros(len(rows) + 1, np.int32)
    np.cumsum(lengths, out=start_B1[1:])
    page_T = table[row_T, positions_T // page_size]
    return Batch(
        tokens_T=np.array(tokens, np.int32),
        positions_T=positions_T,
        slots_T=page_T * page_size + positions_T % page_size,
        query_start_B1=start_B1,
        context_B=np.array(contexts, np.int32),
        block_table_BP=table[rows],
        logits_at_R=start_B1[1:] - 1,
        views=_views(first, block, seen, shift, table) if block else None,
        paths_T=np.repeat(path_B, lengths) if path_B.any() else None,
    )


def _views(
    first: list[int], block: list[int], seen: list[int], shift: list[int], table_KP: np.ndarray
) -> Views:
    first_B1, block_N, seen_N, shift_N = (
        np.array(column, np.int32) for column in (first, block, seen, shift)
    )
    return Views(first_B1, block_N, seen_N, shift_N, table_KP)
