"""Prefix tree over pages in arrays, many pages a call (numba): look up, insert, remove.

A node is a page. The first child of a page hangs from it directly, as most have one alone; others,
and those of roots, are found by their parent and their own tokens through a table of open
addresses. Digests only say where to look, tokens are compared themselves.

Shape letters: P pages, W tokens of a page, M slots of the table, N tokens, R rows.
"""

from typing import NamedTuple

import numpy as np

from engine.kernels.columns import int32_rows, int32s, uint64s
from engine.kernels.compiled import checked, inner, pasted

OUT = -(2**31)  # the parent of a page that is not in the tree
SPREAD = np.uint64(0x9E3779B97F4A7C15)
FOLD, UPPER = np.uint64(29), np.uint64(32)


class Nodes(NamedTuple):
    """The tree. Roots are negative parents."""

    slots_M: np.ndarray  # int32: a page, -1 where free; M is a power of two, over 5/4 P
    parent_P: np.ndarray  # int32, OUT where a page is not in the tree
    fanout_P: np.ndarray  # int32: children of each page
    child_P: np.ndarray  # int32: the one that is not in the table, -1 for none
    digest_P: np.ndarray  # uint64, of pages in the table
    tokens_PW: np.ndarray  # int32


@inner
def nodes_at(at, n):
    """`Nodes` of which the first is column n."""
    return Nodes(
        int32s(at, n), int32s(at, n + 1), int32s(at, n + 2), int32s(at, n + 3), uint64s(at, n + 4),
        int32_rows(at, n + 5),
    )  # fmt: skip


@pasted
def _digest(parent, tokens, first, width):
    """Of `width` tokens from `first` on, after `parent`."""
    digest = np.uint64(parent & 0xFFFFFFFF) * SPREAD
    for i in range(first, first + width - 1, 2):  # two at a time: each waits for the one before
        pair = np.uint64(tokens[i]) | np.uint64(tokens[i + 1]) << UPPER
        digest = (digest ^ pair) * SPREAD
        digest ^= digest >> FOLD
    if width % 2:
        digest = (digest ^ np.uint64(tokens[first + width - 1])) * SPREAD
        digest ^= digest >> FOLD
    return digest


@pasted
def _holds(tokens_PW, page, tokens, first):
    """Whether `page` holds `tokens` from `first` on."""
    same = True
    for i in range(tokens_PW.shape[1]):
        if tokens_PW[page, i] != tokens[first + i]:
            same = False
            break
    return same


@pasted
def _slot(slots_M, parent_P, digest_P, tokens_PW, digest, parent, tokens, first):
    """Where the page lies that holds `tokens` from `first` on after `parent`, or the free slot that
    ends the search."""
    mask = np.uint64(len(slots_M) - 1)
    at = digest & mask
    while slots_M[at] >= 0:
        page = slots_M[at]
        alike = digest_P[page] == digest and parent_P[page] == parent
        if alike and _holds(tokens_PW, page, tokens, first):
            break
        at = (at + np.uint64(1)) & mask
    return at


@inner
def _find(nodes, parent, tokens, first):
    """The page under `parent` that holds `tokens` from `first` on; -1 for none."""
    slots_M, parent_P, fanout_P, child_P, digest_P, tokens_PW = nodes
    if parent >= 0:
        child = child_P[parent]
        if child >= 0 and _holds(tokens_PW, child, tokens, first):
            return child
        if fanout_P[parent] == (child >= 0):
            return np.int32(-1)
    digest = _digest(parent, tokens, first, tokens_PW.shape[1])
    return slots_M[_slot(slots_M, parent_P, digest_P, tokens_PW, digest, parent, tokens, first)]


@inner
def join(nodes, parent, tokens, first, page):
    """Let `page` become the child of `parent` with the tokens from `first` on; returns the page
    that is so already (nothing is changed then), else -1."""
    twin = _find(nodes, parent, tokens, first)
    if twin >= 0:
        return twin
    slots_M, parent_P, fanout_P, child_P, digest_P, tokens_PW = nodes
    if parent >= 0 and child_P[parent] < 0:
        child_P[parent] = page
    else:
        digest = _digest(parent, tokens, first, tokens_PW.shape[1])
        at = _slot(slots_M, parent_P, digest_P, tokens_PW, digest, parent, tokens, first)
        slots_M[at] = page
        digest_P[page] = digest
    parent_P[page] = parent
    for i in range(tokens_PW.shape[1]):
        tokens_PW[page, i] = tokens[first + i]
    if parent >= 0:
        fanout_P[parent] += 1
    return np.int32(-1)


@inner
def take_out(nodes, page):
    """Take a leaf out; returns its parent."""
    slots_M, parent_P, fanout_P, child_P, digest_P, _ = nodes
    parent = parent_P[page]
    if parent >= 0 and child_P[parent] == page:
        child_P[parent] = -1
    else:
        _clear(slots_M, digest_P, page)
    parent_P[page] = OUT
    if parent >= 0:
        fanout_P[parent] -= 1
    return parent


@pasted
def _clear(slots_M, digest_P, page):
    """Take a page out of the table and close the gap."""
    mask = np.uint64(len(slots_M) - 1)
    gap = digest_P[page] & mask
    while slots_M[gap] != page:
        gap = (gap + np.uint64(1)) & mask
    at = gap
    while True:
        at = (at + np.uint64(1)) & mask
        other = slots_M[at]
        if other < 0:
            break
        home = digest_P[other] & mask
        # It may move into the gap unless its search begins behind that.
        if ((at - home) & mask) >= ((at - gap) & mask):
            slots_M[gap] = other
            gap = at
    slots_M[gap] = -1


@checked
def follow(at: np.ndarray, tokens_N: np.ndarray, parent: int, found_P: np.ndarray) -> int:
    """Put the chain of pages under `parent` that holds a prefix of `tokens_N` into `found_P`, at
    most as many as that has places; returns how many there are. `at`: of `Nodes`."""
    nodes = nodes_at(at, 0)
    width = nodes.tokens_PW.shape[1]
    count = min(len(found_P), len(tokens_N) // width)
    for i in range(count):
        page = _find(nodes, parent, tokens_N, i * width)
        if page < 0:
            return i
        found_P[i] = page
        parent = page
    return count


@checked
def insert(nodes: Nodes, tokens_W: np.ndarray, parent: int, page: int) -> int:
    """Make `page` the child of `parent` with those tokens; returns the page that is so already
    (nothing is changed then), else -1."""
    return join(nodes, parent, tokens_W, 0, page)


@checked
def remove(nodes: Nodes, page: int) -> int:
    """Take a leaf out; returns its parent, OUT where it is no leaf of the tree."""
    if nodes.parent_P[page] == OUT or nodes.fanout_P[page]:
        return OUT
    return take_out(nodes, page)


@checked
def insert_chain(
    nodes: Nodes, references_P: np.ndarray, born_P: np.ndarray, table: np.ndarray,
    tokens_N: np.ndarray, parent: int, first: int, stop: int, step: int,
) -> tuple[int, int]:  # fmt: skip
    """Pages `table[first:stop]` of a row become a chain under `parent`, one after the other, each
    born in `step`.

    Returns how far that came, and the page of the tree that has the next one's contents: another
    than the row's own. -1: the row's own page is held by others too, or all is done.
    """
    _, parent_P, fanout_P, child_P, _, tokens_PW = nodes
    width = tokens_PW.shape[1]
    for index in range(first, stop):
        page, start = table[index], index * width
        alone = references_P[page] <= 1
        if alone and parent >= 0 and fanout_P[parent] == 0:  # as `join` would, without its search
            child_P[parent] = page
            fanout_P[parent] = 1
            parent_P[page] = parent
            for i in range(width):
                tokens_PW[page, i] = tokens_N[start + i]
        else:
            twin = _find(nodes, parent, tokens_N, start)
            if twin < 0:
                if not alone:
                    return index, -1
                join(nodes, parent, tokens_N, start, page)
            elif twin != page:
                return index, twin
        born_P[page] = step
        parent = page
    return stop, -1


@checked
def insert_each(
    nodes: Nodes, tables: np.ndarray, tokens: np.ndarray, rows_R: np.ndarray, index_R: np.ndarray,
    inserted_R: np.ndarray,
) -> None:  # fmt: skip
    """Page `index_R` (at least 1) of each row goes under the one before it; `inserted_R` says where
    it did, and not where the tree has its contents already."""
    width = nodes.tokens_PW.shape[1]
    for r in range(len(rows_R)):
        row, index = rows_R[r], index_R[r]
        parent, page = tables[row, index - 1], tables[row, index]
        inserted_R[r] = join(nodes, parent, tokens[row], index * width, page) < 0
