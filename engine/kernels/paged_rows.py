"""Paged rows of a running batch whose tokens nobody computes, many steps a call (numba).

What single steps do one after another when every row decodes and nothing else happens: full pages
of answers join the prefix tree, rows take pages (evicting what they must) and get their tokens.

`cache` and `rows` are tables (`engine.kernels.columns`): of Nodes, Heap and Pool, and of Batch.

Shape letters: P pages, K columns, R rows, T tokens of a row, U pages of a row, C places of the
heap.
"""

from typing import NamedTuple

import numpy as np

from engine.kernels.columns import bool_rows, bools, int32_rows, int32s, uint64s
from engine.kernels.compiled import checked, inner
from engine.kernels.idle_pages import cache_at, make_free
from engine.kernels.page_tree import join

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
    due_R: np.ndarray
    floor_R: np.ndarray
    ends_R: np.ndarray  # bool
    numbers_KR: np.ndarray  # int32, all columns of numbers in one
    flags_KR: np.ndarray  # bool, all of flags


@inner
def batch_at(at):
    """`Batch` by the table of its columns."""
    return Batch(
        int32_rows(at, 0), int32_rows(at, 1), uint64s(at, 2), int32s(at, 3), int32s(at, 4),
        int32s(at, 5), int32s(at, 6), int32s(at, 7), int32s(at, 8), int32s(at, 9), bools(at, 10),
        int32_rows(at, 11), bool_rows(at, 12),
    )  # fmt: skip


@inner
def token(seed, known, vocab):
    """The token of a request that has `known` ones, of no model."""
    return np.int32(((seed * SPREAD + np.uint64(known) * GOLDEN) >> UPPER) % vocab)


@checked
def tokens(seed_S: np.ndarray, known_S: np.ndarray, vocab: np.uint64, tokens_S: np.ndarray) -> None:
    """Fill `tokens_S` with those of requests with such seeds that have so many tokens."""
    for s in range(len(seed_S)):
        tokens_S[s] = token(seed_S[s], known_S[s], vocab)


@checked
def said(
    seed_R: np.ndarray, known_R: np.ndarray, rows_S: np.ndarray, vocab: np.uint64,
    tokens_S: np.ndarray,
) -> None:  # fmt: skip
    """`tokens` of rows."""
    for s in range(len(rows_S)):
        tokens_S[s] = token(seed_R[rows_S[s]], known_R[rows_S[s]], vocab)


@inner
def _index(nodes, pool, batch, count, size, step):
    """Full pages of answers join the tree; whether rows are left that ask for a closer look."""
    left = False
    tables_RU, tokens_RT, cached_R = batch.tables_RU, batch.tokens_RT, batch.cached_R
    indexed_R, references_P, born_P = batch.indexed_R, pool.references_P, pool.born_P
    for row in range(count):
        index = indexed_R[row]
        if cached_R[row] // size <= index:
            continue
        page = tables_RU[row, index]
        if index > 0 and references_P[page] == 1:
            if join(nodes, tables_RU[row, index - 1], tokens_RT[row], index * size, page) < 0:
                indexed_R[row] = index + 1
            born_P[page] = step
        left = left or cached_R[row] // size > indexed_R[row]
    return left


@inner
def _grow(nodes, heap, pool, batch, count, size, steps, free):
    """A page for each row that has no room for `steps` tokens more. Free pages after that, and how
    many left the tree; free pages of -1: there are too few."""
    cached_R, filled_R, wanted, left = batch.cached_R, batch.filled_R, 0, 0
    for row in range(count):
        wanted += cached_R[row] + steps > filled_R[row]
    if wanted > free:
        free, left = make_free(nodes, heap, pool, wanted, free)
        if free < 0:
            return -1, 0
    tables_RU, pages_R = batch.tables_RU, batch.pages_R
    stack_P, references_P = pool.stack_P, pool.references_P
    for row in range(count if wanted else 0):
        if cached_R[row] + steps > filled_R[row]:
            free -= 1
            page = stack_P[free]
            references_P[page] = 1
            tables_RU[row, pages_R[row]] = page
            pages_R[row] += 1
            filled_R[row] += size
    return free, left


@checked
def reach(rows: np.ndarray, count: int) -> tuple[int, int]:
    """How many tokens the first of `count` rows to be due is short of that, below 0 where each
    token is looked at, and how many tokens all of them see as they decode."""
    batch = batch_at(rows)
    due_R, known_R, cached_R = batch.due_R, batch.known_R, batch.cached_R
    least, seen = due_R[0] - known_R[0], count
    for row in range(count):
        least = min(least, due_R[row] - known_R[row])
        seen += cached_R[row]
    return least, seen


@checked
def ended(rows: np.ndarray, count: int, ended_R: np.ndarray) -> int:
    """Fill `ended_R` with those of `count` rows that are due; returns how many."""
    batch, found = batch_at(rows), 0
    for row in range(count):
        if batch.known_R[row] >= batch.due_R[row]:
            ended_R[found] = row
            found += 1
    return found


@checked
def ready(
    cache: np.ndarray, rows: np.ndarray, waits_N: np.ndarray, count: int, most: int, free: int,
    available: int, decode_R: np.ndarray,
) -> tuple[int, int, int]:  # fmt: skip
    """Fill `decode_R` with those of `count` rows that are not among `waits_N`, and give each that
    has no room for a token more a page, of `available` ones.

    Returns how many decode, pages that are free then, and pages that left the tree. -1: more than
    `most` would decode, or pages are too few; nothing has changed.
    """
    (nodes, heap, pool), batch = cache_at(cache), batch_at(rows)
    cached_R, filled_R, decodes, short = batch.cached_R, batch.filled_R, 0, 0
    for row in range(count):
        decode_R[decodes] = row
        decodes += 1
        for n in range(len(waits_N)):
            decodes -= waits_N[n] == row
        short += cached_R[row] + 1 > filled_R[row]
    if decodes > most or short > available:
        return -1, free, 0
    free, left = _grow(nodes, heap, pool, batch, count, nodes.tokens_PW.shape[1], 1, free)
    return decodes, free, left


@checked
def compose(
    rows: np.ndarray, decodes: int, rows_XB: np.ndarray, counts_YB: np.ndarray
) -> tuple[int, int]:
    """The columns of a step of the rows `rows_XB[0]`, of which the first `decodes` have one new
    token each and the others those of `counts_YB[0]`: which get a token, and the sequences that
    this comes from, in `rows_XB`; new tokens, and cached ones before them, in `counts_YB`. Returns
    how many get a token, all but those whose prompt is not complete then, and how many tokens
    those that decode see."""
    batch = batch_at(rows)
    known_R, cached_R, samples, seen = batch.known_R, batch.cached_R, decodes, decodes
    for b in range(decodes):
        row = rows_XB[0, b]
        rows_XB[1, b], rows_XB[2, b] = row, b
        counts_YB[0, b], counts_YB[1, b] = 1, cached_R[row]
        seen += cached_R[row]
    for b in range(decodes, rows_XB.shape[1]):
        row = rows_XB[0, b]
        counts_YB[1, b] = cached_R[row]
        if cached_R[row] + counts_YB[0, b] >= known_R[row]:
            rows_XB[1, samples], rows_XB[2, samples] = row, b
            samples += 1
    return samples, seen


@checked
def index(cache: np.ndarray, rows: np.ndarray, count: int, step: int) -> bool:
    """The next full page of each of `count` rows joins the tree, unless that has its contents.
    Whether rows are left that ask for a closer look."""
    nodes, _, pool = cache_at(cache)
    return _index(nodes, pool, batch_at(rows), count, nodes.tokens_PW.shape[1], step)


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
    rows: np.ndarray, rows_B: np.ndarray, queries_B: np.ndarray, rows_S: np.ndarray,
    tokens_S: np.ndarray, ends_V: np.ndarray, special_S: np.ndarray,
) -> int:  # fmt: skip
    """A step's new tokens are cached, and its samples join their rows. Fills `special_S` with the
    samples that ask for a closer look: rows that are due, and tokens that may end an answer
    (`ends_V`) of a row that ends so beyond its floor. Returns how many."""
    batch = batch_at(rows)
    due_R, floor_R, ends_R = batch.due_R, batch.floor_R, batch.ends_R
    cached_R, known_R, tokens_RT, count = batch.cached_R, batch.known_R, batch.tokens_RT, 0
    for b in range(len(rows_B)):
        cached_R[rows_B[b]] += queries_B[b]
    for s in range(len(rows_S)):
        row, told = rows_S[s], tokens_S[s]
        known = known_R[row]
        tokens_RT[row, known] = told
        known_R[row] = known + 1
        ends = ends_V[told] and ends_R[row] and known + 1 > floor_R[row]
        if ends or known + 1 >= due_R[row]:
            special_S[count] = s
            count += 1
    return count


@checked
def decode(
    cache: np.ndarray, rows: np.ndarray, count: int, number: int, steps: int, shares: bool,
    looked: bool, free: int, vocab: np.uint64,
) -> tuple[int, int, int, bool]:  # fmt: skip
    """Steps `number` … `number` + `steps` - 1 of `count` rows. Where pages are shared they join the
    tree before every step whose number is a multiple of a page's tokens; `looked`: before the
    first they have.

    Returns how many steps were done, pages that are free then, pages that left the tree, and
    whether the next step asks for a closer look at rows whose pages join before it. Raises
    IndexError where pages are too few.
    """
    (nodes, heap, pool), batch = cache_at(cache), batch_at(rows)
    size, done, left = nodes.tokens_PW.shape[1], 0, 0
    known_R, cached_R, seed_R, tokens_RT = (
        batch.known_R, batch.cached_R, batch.seed_R, batch.tokens_RT
    )  # fmt: skip
    while done < steps:
        at = number + done
        joins = shares and not looked and at % size == 0
        if joins and _index(nodes, pool, batch, count, size, at):
            return done, free, left, True
        looked = False
        some = min(steps - done, size - at % size)
        free, gone = _grow(nodes, heap, pool, batch, count, size, some, free)
        if free < 0:
            raise IndexError("no page is left to evict")
        left += gone
        for row in range(count):
            known, seed = known_R[row], seed_R[row]
            for more in range(some):
                tokens_RT[row, known + more] = token(seed, known + more, vocab)
            known_R[row] = known + some
            cached_R[row] += some
        done += some
    return done, free, left, False
