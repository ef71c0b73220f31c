"""Prefix tree over pages in arrays, many pages a call (numba): look up, insert, rest, evict.

A node is a page, found by its parent and its own tokens through a table of open addresses; digests
only say where to look, tokens are compared themselves. Pages that wait to be evicted lie in a heap
by worth and then by when they came; entries go stale rather than being searched for.

Shape letters: P pages, W tokens of a page, M slots of the table, C places of the heap, N tokens,
R rows.
"""

from typing import NamedTuple

import numpy as np

from engine.kernels.compiled import checked, inner
from engine.kernels.page_heap import Heap, pop_least, push

OUT = -(2**31)  # the parent of a page that is not in the tree
SPREAD = np.uint64(0x9E3779B97F4A7C15)
FOLD = np.uint64(29)
NEVER = -np.inf  # the worth of a page that is not worth keeping


class Nodes(NamedTuple):
    """The tree. Roots are negative parents."""

    slots_M: np.ndarray  # int32: a page, -1 where free; M is a power of two, at least 2 P
    parent_P: np.ndarray  # int32, OUT where a page is not in the tree
    fanout_P: np.ndarray  # int32: children of each page
    digest_P: np.ndarray  # uint64
    tokens_PW: np.ndarray  # int32


@inner
def _digest(parent, tokens):
    digest = np.uint64(parent & 0xFFFFFFFF) * SPREAD
    for i in range(len(tokens)):
        digest = (digest ^ np.uint64(tokens[i])) * SPREAD
        digest ^= digest >> FOLD
    return digest


@inner
def _slot(nodes, digest, parent, tokens):
    """Where the page lies that holds `tokens` after `parent`, or the free slot that ends the
    search."""
    mask = np.uint64(len(nodes.slots_M) - 1)
    at = digest & mask
    while True:
        page = nodes.slots_M[at]
        if page < 0:
            return at
        if nodes.digest_P[page] == digest and nodes.parent_P[page] == parent:
            same = True
            for i in range(len(tokens)):
                if nodes.tokens_PW[page, i] != tokens[i]:
                    same = False
                    break
            if same:
                return at
        at = (at + np.uint64(1)) & mask


@inner
def _put(nodes, at, digest, parent, tokens, page):
    nodes.slots_M[at] = page
    nodes.digest_P[page] = digest
    nodes.parent_P[page] = parent
    for i in range(len(tokens)):
        nodes.tokens_PW[page, i] = tokens[i]
    if parent >= 0:
        nodes.fanout_P[parent] += 1


@inner
def _remove(nodes, page):
    """Take a leaf out and close the gap in the table; returns its parent."""
    mask = np.uint64(len(nodes.slots_M) - 1)
    gap = nodes.digest_P[page] & mask
    while nodes.slots_M[gap] != page:
        gap = (gap + np.uint64(1)) & mask
    at = gap
    while True:
        at = (at + np.uint64(1)) & mask
        other = nodes.slots_M[at]
        if other < 0:
            break
        home = nodes.digest_P[other] & mask
        # It may move into the gap unless its search begins behind that.
        if ((at - home) & mask) >= ((at - gap) & mask):
            nodes.slots_M[gap] = other
            gap = at
    nodes.slots_M[gap] = -1
    parent = nodes.parent_P[page]
    nodes.parent_P[page] = OUT
    if parent >= 0:
        nodes.fanout_P[parent] -= 1
    return parent


@checked
def follow(nodes: Nodes, tokens_N: np.ndarray, parent: int, found_P: np.ndarray) -> int:
    """Put the chain of pages under `parent` that holds a prefix of `tokens_N` into `found_P`, at
    most as many as that has places; returns how many there are."""
    width = nodes.tokens_PW.shape[1]
    count = min(len(found_P), len(tokens_N) // width)
    for i in range(count):
        tokens = tokens_N[i * width : (i + 1) * width]
        page = nodes.slots_M[_slot(nodes, _digest(parent, tokens), parent, tokens)]
        if page < 0:
            return i
        found_P[i] = page
        parent = page
    return count


@checked
def insert(nodes: Nodes, tokens_W: np.ndarray, parent: int, page: int) -> int:
    """Make `page` the child of `parent` with those tokens; returns the page that is so already
    (nothing is changed then), else -1."""
    digest = _digest(parent, tokens_W)
    at = _slot(nodes, digest, parent, tokens_W)
    if nodes.slots_M[at] >= 0:
        return nodes.slots_M[at]
    _put(nodes, at, digest, parent, tokens_W, page)
    return -1


@checked
def remove(nodes: Nodes, page: int) -> int:
    """Take a leaf out; returns its parent, OUT where it is no leaf of the tree."""
    if nodes.parent_P[page] == OUT or nodes.fanout_P[page]:
        return OUT
    return _remove(nodes, page)


@checked
def insert_chain(
    nodes: Nodes, references_P: np.ndarray, table: np.ndarray, tokens_N: np.ndarray, parent: int,
    first: int, stop: int,
) -> tuple[int, int]:  # fmt: skip
    """Pages `table[first:stop]` of a row become a chain under `parent`, one after the other.

    Returns how far that came, and the page of the tree that has the next one's contents: another
    than the row's own. -1: the row's own page is held by others too, or all is done.
    """
    width = nodes.tokens_PW.shape[1]
    for index in range(first, stop):
        tokens = tokens_N[index * width : (index + 1) * width]
        digest, page = _digest(parent, tokens), table[index]
        at = _slot(nodes, digest, parent, tokens)
        twin = nodes.slots_M[at]
        if twin < 0:
            if references_P[page] > 1:
                return index, -1
            _put(nodes, at, digest, parent, tokens, page)
        elif twin != page:
            return index, twin
        parent = page
    return stop, -1


@inner
def join(nodes, parent, tokens, page):
    """Whether `page` has become the child of `parent` with those tokens: the tree had none."""
    digest = _digest(parent, tokens)
    at = _slot(nodes, digest, parent, tokens)
    if nodes.slots_M[at] >= 0:
        return False
    _put(nodes, at, digest, parent, tokens, page)
    return True


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
        own, parent = tokens[row, index * width : (index + 1) * width], tables[row, index - 1]
        inserted_R[r] = join(nodes, parent, own, tables[row, index])


@checked
def pop(heap: Heap) -> int:
    """The page worth least, which leaves the heap; -1 where there is none."""
    return pop_least(heap)


@inner
def _rest(nodes, heap, references_P, worth_P, page, gone, count):
    """See `rest`, of one page."""
    while page >= 0 and nodes.parent_P[page] != OUT and heap.stamp_P[page] == 0:
        if references_P[page] or nodes.fanout_P[page]:
            break
        if worth_P[page] != NEVER:
            push(heap, page, worth_P[page])
            break
        gone[count] = page
        count += 1
        page = _remove(nodes, page)
    return count


@checked
def rest(
    nodes: Nodes, heap: Heap, references_P: np.ndarray, worth_P: np.ndarray, pages: np.ndarray,
    gone: np.ndarray,
) -> int:  # fmt: skip
    """`pages`, the last one first, are up for eviction where nobody holds them and nothing hangs
    under them. Those not worth keeping leave the tree, and then the one above may be next: they go
    into `gone`; returns how many."""
    count = 0
    for i in range(len(pages) - 1, -1, -1):
        count = _rest(nodes, heap, references_P, worth_P, pages[i], gone, count)
    return count


@inner
def evict_pages(nodes, heap, references_P, worth_P, wanted, gone, evicted):
    """See `evict`."""
    count = 0
    while count < wanted:
        page = pop_least(heap)
        if page < 0:
            return -1
        gone[count], evicted[count] = page, True
        parent = _remove(nodes, page)
        before = count + 1
        count = _rest(nodes, heap, references_P, worth_P, parent, gone, before)
        evicted[before:count] = False
    return count


@checked
def evict(
    nodes: Nodes, heap: Heap, references_P: np.ndarray, worth_P: np.ndarray, wanted: int,
    gone: np.ndarray, evicted: np.ndarray,
) -> int:  # fmt: skip
    """Take pages out, the least worth first, until `wanted` are; fills `gone`, and `evicted`:
    False where a page only was not worth keeping once what hung under it had gone. Returns how
    many, -1 where there are not so many."""
    return evict_pages(nodes, heap, references_P, worth_P, wanted, gone, evicted)


@checked
def leave(
    nodes: Nodes, references_P: np.ndarray, last_used_P: np.ndarray, stack_P: np.ndarray,
    pages: np.ndarray, step: int, free: int, kept: np.ndarray,
) -> tuple[int, int]:  # fmt: skip
    """One holder less for each of distinct `pages`. Those that nobody holds now were last used in
    `step`; of the tree they go into `kept`, others onto `stack_P`, which has `free`.

    Returns how many were kept, and how many are free then.
    """
    count = 0
    for i in range(len(pages)):
        page = pages[i]
        references_P[page] -= 1
        if references_P[page] == 0:
            last_used_P[page] = step
            if nodes.parent_P[page] == OUT:
                stack_P[free] = page
                free += 1
            else:
                kept[count] = page
                count += 1
    return count, free
