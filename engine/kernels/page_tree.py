"""Prefix tree over pages in arrays, many pages a call (numba): look up, insert, remove.

A node is a page, found by its parent and its own tokens through a table of open addresses; digests
only say where to look, tokens are compared themselves.

Shape letters: P pages, W tokens of a page, M slots of the table, N tokens, R rows.
"""

from typing import NamedTuple

import numpy as np

from engine.kernels.compiled import checked, inner, pasted

OUT = -(2**31)  # the parent of a page that is not in the tree
SPREAD = np.uint64(0x9E3779B97F4A7C15)
FOLD, UPPER = np.uint64(29), np.uint64(32)


class Nodes(NamedTuple):
    """The tree. Roots are negative parents."""

    slots_M: np.ndarray  # int32: a page, -1 where free; M is a power of two, at least 2 P
    parent_P: np.ndarray  # int32, OUT where a page is not in the tree
    fanout_P: np.ndarray  # int32: children of each page
    digest_P: np.ndarray  # uint64
    tokens_PW: np.ndarray  # int32


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
def _slot(slots_M, digest_P, parent_P, tokens_PW, digest, parent, tokens, first):
    """Where the page lies that holds `tokens` from `first` on after `parent`, or the free slot that
    ends the search."""
    mask = np.uint64(len(slots_M) - 1)
    at = digest & mask
    while slots_M[at] >= 0:
        page = slots_M[at]
        if digest_P[page] == digest and parent_P[page] == parent:
            same = True
            for i in range(tokens_PW.shape[1]):
                if tokens_PW[page, i] != tokens[first + i]:
                    same = False
                    break
            if same:
                break
        at = (at + np.uint64(1)) & mask
    return at


@pasted
def _put(slots_M, digest_P, parent_P, fanout_P, tokens_PW, at, digest, parent, tokens, first, page):
    slots_M[at] = page
    digest_P[page] = digest
    parent_P[page] = parent
    for i in range(tokens_PW.shape[1]):
        tokens_PW[page, i] = tokens[first + i]
    if parent >= 0:
        fanout_P[parent] += 1


@pasted
def take_out(slots_M, digest_P, parent_P, fanout_P, page):
    """Take a leaf out and close the gap in the table; returns its parent."""
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
    parent = parent_P[page]
    parent_P[page] = OUT
    if parent >= 0:
        fanout_P[parent] -= 1
    return parent


@checked
def follow(nodes: Nodes, tokens_N: np.ndarray, parent: int, found_P: np.ndarray) -> int:
    """Put the chain of pages under `parent` that holds a prefix of `tokens_N` into `found_P`, at
    most as many as that has places; returns how many there are."""
    slots_M, parent_P, _, digest_P, tokens_PW = nodes
    width = tokens_PW.shape[1]
    count = min(len(found_P), len(tokens_N) // width)
    for i in range(count):
        first = i * width
        digest = _digest(parent, tokens_N, first, width)
        at = _slot(slots_M, digest_P, parent_P, tokens_PW, digest, parent, tokens_N, first)
        page = slots_M[at]
        if page < 0:
            return i
        found_P[i] = page
        parent = page
    return count


@checked
def insert(nodes: Nodes, tokens_W: np.ndarray, parent: int, page: int) -> int:
    """Make `page` the child of `parent` with those tokens; returns the page that is so already
    (nothing is changed then), else -1."""
    slots_M, parent_P, fanout_P, digest_P, tokens_PW = nodes
    digest = _digest(parent, tokens_W, 0, tokens_PW.shape[1])
    at = _slot(slots_M, digest_P, parent_P, tokens_PW, digest, parent, tokens_W, 0)
    if slots_M[at] >= 0:
        return slots_M[at]
    _put(slots_M, digest_P, parent_P, fanout_P, tokens_PW, at, digest, parent, tokens_W, 0, page)
    return -1


@checked
def remove(nodes: Nodes, page: int) -> int:
    """Take a leaf out; returns its parent, OUT where it is no leaf of the tree."""
    if nodes.parent_P[page] == OUT or nodes.fanout_P[page]:
        return OUT
    return take_out(nodes.slots_M, nodes.digest_P, nodes.parent_P, nodes.fanout_P, page)


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
    slots_M, parent_P, fanout_P, digest_P, tokens_PW = nodes
    width = tokens_PW.shape[1]
    for index in range(first, stop):
        start, page = index * width, table[index]
        digest = _digest(parent, tokens_N, start, width)
        at = _slot(slots_M, digest_P, parent_P, tokens_PW, digest, parent, tokens_N, start)
        twin = slots_M[at]
        if twin < 0:
            if references_P[page] > 1:
                return index, -1
            _put(
                slots_M, digest_P, parent_P, fanout_P, tokens_PW, at, digest, parent, tokens_N,
                start, page,
            )  # fmt: skip
        elif twin != page:
            return index, twin
        born_P[page] = step
        parent = page
    return stop, -1


@inner
def join(slots_M, parent_P, fanout_P, digest_P, tokens_PW, parent, tokens, first, page):
    """Whether `page` has become the child of `parent` with the tokens from `first` on: the tree had
    none."""
    digest = _digest(parent, tokens, first, tokens_PW.shape[1])
    at = _slot(slots_M, digest_P, parent_P, tokens_PW, digest, parent, tokens, first)
    if slots_M[at] >= 0:
        return False
    _put(slots_M, digest_P, parent_P, fanout_P, tokens_PW, at, digest, parent, tokens, first, page)
    return True


@checked
def insert_each(
    nodes: Nodes, tables: np.ndarray, tokens: np.ndarray, rows_R: np.ndarray, index_R: np.ndarray,
    inserted_R: np.ndarray,
) -> None:  # fmt: skip
    """Page `index_R` (at least 1) of each row goes under the one before it; `inserted_R` says where
    it did, and not where the tree has its contents already."""
    slots_M, parent_P, fanout_P, digest_P, tokens_PW = nodes
    width = tokens_PW.shape[1]
    for r in range(len(rows_R)):
        row, index = rows_R[r], index_R[r]
        parent, page = tables[row, index - 1], tables[row, index]
        inserted_R[r] = join(
            slots_M, parent_P, fanout_P, digest_P, tokens_PW, parent, tokens[row], index * width,
            page,
        )  # fmt: skip
