"""Batch of a step from the rows of the persistent batch (numba): tokens, positions, slots, pages.

Shape letters: R rows, W tokens of a row, P pages of a row, B sequences of the step, T new tokens.
"""

import numpy as np

from engine.kernels.compiled import checked


@checked
def pack(
    tokens_RW: np.ndarray,
    tables_RP: np.ndarray,
    rows_B: np.ndarray,
    starts_B: np.ndarray,
    queries_B: np.ndarray,
    page_size: int,
    arrays_3T: np.ndarray,
    start_B1: np.ndarray,
    context_B: np.ndarray,
    table_BP: np.ndarray,
) -> None:
    """Fill a batch's arrays: `queries_B` tokens of row `rows_B` from `starts_B` on.

    `arrays_3T`: the new tokens, their positions and their slots.
    """
    at = start_B1[0] = 0
    for b in range(len(rows_B)):
        row, first = rows_B[b], starts_B[b]
        for i in range(queries_B[b]):
            position = first + i
            page = tables_RP[row, position // page_size]
            arrays_3T[0, at], arrays_3T[1, at] = tokens_RW[row, position], position
            arrays_3T[2, at] = page * page_size + position % page_size
            at += 1
        start_B1[b + 1], context_B[b] = at, first + queries_B[b]
        for i in range(table_BP.shape[1]):
            table_BP[b, i] = tables_RP[row, i]


@checked
def ones(
    tokens_RW: np.ndarray,
    tables_RP: np.ndarray,
    rows_B: np.ndarray,
    starts_B: np.ndarray,
    page_size: int,
    arrays_4B: np.ndarray,
    table_BP: np.ndarray,
) -> None:
    """`pack` where each sequence has one new token, the one at `starts_B`.

    `arrays_4B`: the new tokens, their positions, their slots, and what each sees.
    """
    for b in range(len(rows_B)):
        row, position = rows_B[b], np.int64(starts_B[b])
        page = np.int64(tables_RP[row, position // page_size])
        arrays_4B[0, b], arrays_4B[1, b] = tokens_RW[row, position], position
        arrays_4B[2, b] = page * page_size + position % page_size
        arrays_4B[3, b] = position + 1
        for i in range(table_BP.shape[1]):
            table_BP[b, i] = tables_RP[row, i]
