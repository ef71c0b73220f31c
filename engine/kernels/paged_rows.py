"""Paged rows of a running batch whose tokens nobody computes, many steps a call (numba).

What single steps do one after another when every row decodes and nothing else happens: full pages
of answers join the prefix tree, rows take pages (evicting what they must) and get their tokens.

Shape letters: P pages, R rows, T tokens of a row, U pages of a row, C places of the heap.
"""

from typing import NamedTuple

import numpy as np

from engine.kernels.compiled import checked, inner
from engine.kernels.idle_pages import Pool, make_free
from engine.kernels.page_heap import Heap
from engine.kernels.page_tree import Nodes, join

SPREAD, GOLDEN = np.uint64(0xD1342543DE82EF95), np.uint64(0x9E3779B97F4A7C15)
UPPER = np.uint64(33)  # bits shifted out: the lower ones of a product are poorly mixed


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


@checked
def tokens(seed_S: np.ndarray, known_S: np.ndarray, vocab: np.uint64, tokens_S: np.ndarray) -> None:
    """Fill `tokens_S` with those of requests with such seeds that have so many tokens."""
    for s in range(len(seed_S)):
        tokens_S[s] = token(seed_S[s], known_S[s], vocab)


@inner
def _index(nodes, pool, batch, count, size, step):
    """Full pages of answers join the tree; whether rows are left that ask for a closer look."""
    left = False
    slots_M, parent_P, fanout_P, digest_P, tokens_PW = nodes
    tables_RU, tokens_RT, cached_R = batch.tables_RU, batch.tokens_RT, batch.cached_R
    indexed_R, references_P, born_P = batch.indexed_R, pool.references_P, pool.born_P
    for row in range(count):
        index = indexed_R[row]
        if cached_R[row] // size <= index:
            continue
        page = tables_RU[row, index]
        if index > 0 and references_P[page] == 1:
            if join(
                slots_M, parent_P, fanout_P, digest_P, tokens_PW, tables_RU[row, index - 1],
                tokens_RT[row], index * size, page,
            ):  # fmt: skip
                indexed_R[row] = index + 1
            born_P[page] = step
        left = left or cached_R[row] // size > indexed_R[row]
    return left


@inner
def _grow(nodes, heap, pool, batch, count, size, steps, free, far):
    """A page for each row that has no room for `steps` tokens more. Free pages after that, and how
    many left the tree; free pages of -1: there are too few."""
    wanted = left = 0
    for row in range(count):
        wanted += batch.cached_R[row] + steps > batch.filled_R[row]
    if wanted > free:
        free, left = make_free(nodes, heap, pool, wanted, free, far)
        if free < 0:
            return -1, 0
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
def index(nodes: Nodes, pool: Pool, batch: Batch, count: int, step: int) -> bool:
    """The next full page of each of `count` rows joins the tree, unless that has its contents.
    Whether rows are left that ask for a closer look."""
    return _index(nodes, pool, batch, count, nodes.tokens_PW.shape[1], step)


@checked
def give(
    tables_RU: np.ndarray, pages_R: np.ndarray, filled_R: np.ndarray, rows_N: np.ndarray,
    pages_N: np.ndarray, size: int, starts_N: np.ndarray,
) -> None:  # fmt: skip
    """Row `rows_N[n]` gets page `pages_N[n]` of `size` tokens after its own, for its tokens from
    `starts_N[n]` on, which is filled."""
    for n in range(len(rows_N)):
        row = rows_N[n]
        starts_N[n] = filled_R[row]
        tables_RU[row, pages_R[row]] = pages_N[n]
        pages_R[row] += 1
        filled_R[row] += size


@checked
def append(
    batch: Batch, due_R: np.ndarray, floor_R: np.ndarray, ends_R: np.ndarray, rows_B: np.ndarray,
    queries_B: np.ndarray, rows_S: np.ndarray, tokens_S: np.ndarray, ends_V: np.ndarray,
    special_S: np.ndarray,
) -> int:  # fmt: skip
    """A step's new tokens are cached, and its samples join their rows. Fills `special_S` with the
    samples that ask for a closer look: rows that are due, and tokens that may end an answer
    (`ends_V`) of a row that ends so (`ends_R`) beyond its floor. Returns how many."""
    count = 0
    for b in range(len(rows_B)):
        batch.cached_R[rows_B[b]] += queries_B[b]
    for s in range(len(rows_S)):
        row, told = rows_S[s], tokens_S[s]
        known = batch.known_R[row]
        batch.tokens_RT[row, known] = told
        batch.known_R[row] = known + 1
        ends = ends_V[told] and ends_R[row] and known + 1 > floor_R[row]
        if ends or known + 1 >= due_R[row]:
            special_S[count] = s
            count += 1
    return count


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
