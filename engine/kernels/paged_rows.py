"""Paged rows of a running batch whose tokens nobody computes, many steps a call (numba).

What single steps do one after another when every row decodes and nothing else happens: full pages
of answers join the prefix tree, rows take pages (evicting what they must) and get their tokens.

Shape letters: P pages, R rows, T tokens of a row, U pages of a row, C places of the heap.
"""

from typing import NamedTuple

import numpy as np

from engine.kernels.compiled import checked, inner
from engine.kernels.page_heap import Heap
from engine.kernels.page_tree import Nodes, evict_pages, join

SPREAD, GOLDEN = np.uint64(0xD1342543DE82EF95), np.uint64(0x9E3779B97F4A7C15)
UPPER = np.uint64(33)  # bits shifted out: the lower ones of a product are poorly mixed


class Pool(NamedTuple):
    """Who holds pages, and what is known of each."""

    references_P: np.ndarray  # int32
    stack_P: np.ndarray  # int32: free pages, the next one last
    worth_P: np.ndarray  # float64, of idle pages
    born_P: np.ndarray  # int64: the step in which it was indexed
    uses_P: np.ndarray  # int64
    next_use_P: np.ndarray  # int64
    gone_P: np.ndarray  # int32, to write into
    evicted_P: np.ndarray  # bool, to write into


class Batch(NamedTuple):
    """Rows in use come first."""

    tables_RU: np.ndarray  # int32
    tokens_RT: np.ndarray  # int32
    seed_R: np.ndarray  # uint64
    known_R: np.ndarray  # int32, as all that follow
    cached_R: np.ndarray
    filled_R: np.ndarray
    pages_R: np.ndarray
    indexed_R: np.ndarray


@inner
def token(seed, known, vocab):
    """The token of a request that has `known` ones, of no model."""
    return np.int32(((seed * SPREAD + np.uint64(known) * GOLDEN) >> UPPER) % vocab)


@inner
def _index(nodes, pool, batch, count, size, step):
    """Full pages of answers join the tree; whether rows are left that ask for a closer look."""
    left = False
    for row in range(count):
        index = batch.indexed_R[row]
        if batch.cached_R[row] // size <= index:
            continue
        page = batch.tables_RU[row, index]
        if index > 0 and pool.references_P[page] == 1:
            own = batch.tokens_RT[row, index * size : (index + 1) * size]
            if join(nodes, batch.tables_RU[row, index - 1], own, page):
                batch.indexed_R[row] = index + 1
            pool.born_P[page] = step
        left = left or batch.cached_R[row] // size > batch.indexed_R[row]
    return left


@inner
def _grow(nodes, heap, pool, batch, count, size, steps, free, far):
    """A page for each row that has no room for `steps` tokens more. Free pages after that, and how
    many left the tree; free pages of -1: there are too few."""
    wanted = left = 0
    for row in range(count):
        wanted += batch.cached_R[row] + steps > batch.filled_R[row]
    if wanted > free:
        left = evict_pages(
            nodes, heap, pool.references_P, pool.worth_P, wanted - free, pool.gone_P, pool.evicted_P
        )
        if left < 0:
            return -1, 0
        for asked in (False, True):  # those that were not worth keeping are given back first
            for i in range(left):
                if pool.evicted_P[i] == asked:
                    page = pool.gone_P[i]
                    pool.uses_P[page], pool.next_use_P[page] = 0, far
                    pool.stack_P[free] = page
                    free += 1
    for row in range(count):
        if batch.cached_R[row] + steps > batch.filled_R[row]:
            free -= 1
            page = pool.stack_P[free]
            pool.references_P[page] = 1
            batch.tables_RU[row, batch.pages_R[row]] = page
            batch.pages_R[row] += 1
            batch.filled_R[row] += size
    return free, left


@checked
def decode(
    nodes: Nodes, heap: Heap, pool: Pool, batch: Batch, count: int, number: int, steps: int,
    shares: bool, looked: bool, free: int, far: int, vocab: np.uint64,
) -> tuple[int, int, int, bool]:  # fmt: skip
    """Steps `number` … `number` + `steps` - 1 of `count` rows. Where pages are shared they join the
    tree before every step whose number is a multiple of a page's tokens; `looked`: before the
    first they have. `far`: a step that never comes.

    Returns how many steps were done, pages that are free then, pages that left the tree, and
    whether the next step asks for a closer look at rows whose pages join before it. Raises
    IndexError where pages are too few.
    """
    size, done, left = nodes.tokens_PW.shape[1], 0, 0
    while done < steps:
        at = number + done
        joins = shares and not looked and at % size == 0
        if joins and _index(nodes, pool, batch, count, size, at):
            return done, free, left, True
        looked = False
        some = min(steps - done, size - at % size)
        free, gone = _grow(nodes, heap, pool, batch, count, size, some, free, far)
        if free < 0:
            raise IndexError("no page is left to evict")
        left += gone
        for row in range(count):
            known = batch.known_R[row]
            for more in range(some):
                batch.tokens_RT[row, known + more] = token(batch.seed_R[row], known + more, vocab)
            batch.known_R[row] = known + some
            batch.cached_R[row] += some
        done += some
    return done, free, left, False
