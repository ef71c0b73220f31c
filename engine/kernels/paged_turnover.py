"""Paged rows that come and go in a running batch of which nothing is told (numba).

What a request's entering and leaving do to pages, prefix tree and columns, in one call each.
`cache` and `rows` are tables, as in `paged_rows`.

Shape letters: P pages, R rows, N tokens of a request, H pages that it joins, K columns.
"""

import numpy as np

from engine.kernels.compiled import checked, pasted
from engine.kernels.idle_pages import cache_at, claim, retire
from engine.kernels.page_tree import insert_chain
from engine.kernels.paged_rows import batch_at


@pasted
def _copy(to, of, count):
    """The first `count`. One by one: an array given to a slice brings half a second of compiling,
    of the words that say how their shapes differ."""
    for i in range(count):
        to[i] = of[i]


@checked
def enter(
    cache: np.ndarray, rows: np.ndarray, row: int, tokens_N: np.ndarray, joined_H: np.ndarray,
    fresh: int, numbers_K: tuple[int, ...], flags_K: tuple[bool, ...], seed: int, free: int,
) -> tuple[int, int]:  # fmt: skip
    """Fill `row` with a request: its tokens, the pages that it has joined and `fresh` ones behind
    them, and what is known of it. Returns pages that are free then and how many left the tree.
    Raises IndexError where pages are too few."""
    (nodes, heap, pool), batch = cache_at(cache), batch_at(rows)
    numbers_KR, flags_KR = batch.numbers_KR, batch.flags_KR
    table, tokens_T, held = batch.tables_RU[row], batch.tokens_RT[row], len(joined_H)
    taken = np.empty(fresh, np.int32)
    free, left = claim(nodes, heap, pool, taken, free)
    _copy(table, joined_H, held)
    _copy(table[held:], taken, fresh)
    table[held + fresh :] = -1
    _copy(tokens_T, tokens_N, len(tokens_N))
    for k in range(len(numbers_K)):
        numbers_KR[k, row] = numbers_K[k]
    for k in range(len(flags_K)):
        flags_KR[k, row] = flags_K[k]
    batch.seed_R[row] = seed
    return free, left


@checked
def leave(
    cache: np.ndarray, rows: np.ndarray, age_P: np.ndarray, row: int, last: int, root: int,
    shares: bool, step: int, free: int, tokens: bool,
) -> tuple[int, int]:  # fmt: skip
    """A request leaves `row`: its full pages join the tree (`shares`) and all are left, worth their
    age; the `last` row takes its place (without its `tokens` it says nonsense).

    Returns how many pages nobody holds now of those in the tree, and how many are free. -1: the
    tree has one of its pages already, which the row is to join before; those above it are there.
    """
    (nodes, heap, pool), batch = cache_at(cache), batch_at(rows)
    numbers_KR, flags_KR = batch.numbers_KR, batch.flags_KR
    table, cached = batch.tables_RU[row], batch.cached_R[row]
    size, index = nodes.tokens_PW.shape[1], batch.indexed_R[row]
    if shares and index < cached // size:
        parent = table[index - 1] if index else root
        reached, twin = insert_chain(
            nodes, pool.references_P, pool.born_P, table, batch.tokens_RT[row], parent, index,
            cached // size, step,
        )  # fmt: skip
        batch.indexed_R[row] = reached
        if twin >= 0:
            return -1, free
    kept, free = retire(nodes, heap, pool, age_P, table[: batch.pages_R[row]], step, free)
    if row != last:
        for k in range(len(numbers_KR)):
            numbers_KR[k, row] = numbers_KR[k, last]
        for k in range(len(flags_KR)):
            flags_KR[k, row] = flags_KR[k, last]
        batch.seed_R[row] = batch.seed_R[last]
        if tokens:
            _copy(batch.tokens_RT[row], batch.tokens_RT[last], batch.known_R[row])
        _copy(table, batch.tables_RU[last], len(table))
        batch.tables_RU[last] = -1
    return kept, free


@checked
def index(
    cache: np.ndarray, table: np.ndarray, tokens_N: np.ndarray, parent: int, first: int, stop: int,
    step: int,
) -> tuple[int, int]:  # fmt: skip
    """`insert_chain` into the tree of `cache`."""
    nodes, _, pool = cache_at(cache)
    given = pool.references_P, pool.born_P, table, tokens_N, parent, first, stop, step
    return insert_chain(nodes, *given)
