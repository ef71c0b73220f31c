"""Pages of a prefix tree that nobody holds, in arrays, many a call (numba): left, at rest, evicted.

They wait in a heap by worth and then by when they came, the leaves of the tree alone; entries go
stale rather than being searched for. Columns have names of their own in loops: one that is looked
up in its tuple each time is counted as used and left each time.

Shape letters: P pages, C places of the heap.
"""

from typing import NamedTuple

import numpy as np

from engine.kernels.columns import bools, float64s, int32s, int64s
from engine.kernels.compiled import checked, inner
from engine.kernels.page_heap import Heap, heap_at, pop_least, push
from engine.kernels.page_tree import OUT, Nodes, nodes_at, take_out

NODES, HEAP = len(Nodes._fields), len(Heap._fields)
NEVER = -np.inf  # the worth of a page that is not worth keeping


class Pool(NamedTuple):
    """Who holds pages, and what is known of each."""

    references_P: np.ndarray  # int32
    stack_P: np.ndarray  # int32: free pages, the next one last
    worth_P: np.ndarray  # float64, of idle pages
    born_P: np.ndarray  # int64: the step in which it was indexed
    last_used_P: np.ndarray  # int64: the latest step in which somebody held it
    uses_P: np.ndarray  # int64
    soon_P: np.ndarray  # int64
    gone_P: np.ndarray  # int32, to write into
    evicted_P: np.ndarray  # bool, to write into


@inner
def cache_at(at):
    """Nodes, heap and pool, whose columns follow one another."""
    n = NODES + HEAP
    pool = Pool(
        int32s(at, n), int32s(at, n + 1), float64s(at, n + 2), int64s(at, n + 3),
        int64s(at, n + 4), int64s(at, n + 5), int64s(at, n + 6), int32s(at, n + 7),
        bools(at, n + 8),
    )  # fmt: skip
    return nodes_at(at, 0), heap_at(at, NODES), pool


@checked
def pop(heap: Heap) -> int:
    """The page worth least, which leaves the heap; -1 where there is none."""
    return pop_least(heap)


@checked
def rest(
    nodes: Nodes, heap: Heap, references_P: np.ndarray, worth_P: np.ndarray, pages: np.ndarray,
    gone: np.ndarray,
) -> int:  # fmt: skip
    """`pages`, the last one first, are up for eviction where nobody holds them and nothing hangs
    under them. Those not worth keeping leave the tree, and then the one above may be next: they go
    into `gone`; returns how many."""
    parent_P, fanout_P, stamp_P, count = nodes.parent_P, nodes.fanout_P, heap.stamp_P, 0
    for i in range(len(pages) - 1, -1, -1):
        page = pages[i]
        while page >= 0 and fanout_P[page] == 0 and references_P[page] == 0:
            if parent_P[page] == OUT or stamp_P[page] != 0:
                break
            if worth_P[page] != NEVER:
                push(heap, page, worth_P[page])
                break
            gone[count] = page
            count += 1
            page = take_out(nodes, page)
    return count


@inner
def evict_pages(nodes, heap, references_P, worth_P, wanted, gone, evicted):
    """See `evict`."""
    parent_P, fanout_P, child_P, stamp_P = (
        nodes.parent_P, nodes.fanout_P, nodes.child_P, heap.stamp_P
    )  # fmt: skip
    worth_C, counts = heap.worth_C, heap.counts
    count, following = 0, -1
    while count < wanted:
        page = following if following >= 0 else pop_least(heap)
        if page < 0:
            return -1
        gone[count], evicted[count], following = page, True, -1
        count += 1
        above = parent_P[page]
        if above >= 0 and child_P[above] == page:  # as `take_out` would, without its table
            child_P[above] = -1
            fanout_P[above] -= 1
            parent_P[page] = OUT
            page = above
        else:
            page = take_out(nodes, page)
        while page >= 0 and fanout_P[page] == 0 and references_P[page] == 0:
            if parent_P[page] == OUT or stamp_P[page] != 0:
                break
            worth = worth_P[page]
            if worth != NEVER:
                if count < wanted and (counts[0] == 0 or worth < worth_C[0]):
                    counts[1] += 1  # it would be pushed and be the next to be popped
                    following = page
                else:
                    push(heap, page, worth)
                break
            gone[count], evicted[count] = page, False
            count += 1
            page = take_out(nodes, page)
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


@inner
def make_free(nodes, heap, pool, wanted, free):
    """Evict until `wanted` pages are free. Free pages after that, and how many left the tree; free
    pages of -1: there are too few."""
    left = evict_pages(
        nodes, heap, pool.references_P, pool.worth_P, wanted - free, pool.gone_P, pool.evicted_P
    )
    if left < 0:
        return -1, 0
    gone_P, evicted_P, stack_P = pool.gone_P, pool.evicted_P, pool.stack_P
    uses_P, soon_P = pool.uses_P, pool.soon_P
    for asked in (False, True):  # those that were not worth keeping are given back first
        for i in range(left):
            if evicted_P[i] == asked:
                page = gone_P[i]
                if uses_P[page] or soon_P[page]:  # else what was never written stays so
                    uses_P[page], soon_P[page] = 0, 0
                stack_P[free] = page
                free += 1
    return free, left


@checked
def claim(nodes: Nodes, heap: Heap, pool: Pool, taken: np.ndarray, free: int) -> tuple[int, int]:
    """Fill `taken` with pages that are held once from now on; evicts what it must. Returns pages
    that are free then and how many left the tree. Raises IndexError where pages are too few."""
    count, left = len(taken), 0
    if count > free:
        free, left = make_free(nodes, heap, pool, count, free)
        if free < 0:
            raise IndexError("no page is left to evict")
    stack_P, references_P = pool.stack_P, pool.references_P
    for i in range(count):
        free -= 1
        taken[i] = stack_P[free]
        references_P[taken[i]] = 1
    return free, left


@checked
def retire(
    nodes: Nodes, heap: Heap, pool: Pool, age_P: np.ndarray, pages: np.ndarray, step: int, free: int
) -> tuple[int, int]:
    """`leave`, and those of the tree that nobody holds are up for eviction, worth their age.
    Returns how many those are, and how many are free then."""
    parent_P, fanout_P, references_P = nodes.parent_P, nodes.fanout_P, pool.references_P
    last_used_P, stack_P, worth_P = pool.last_used_P, pool.stack_P, pool.worth_P
    stamp_P, count = heap.stamp_P, 0
    for i in range(len(pages)):
        page = pages[i]
        references_P[page] -= 1
        if references_P[page] == 0:
            last_used_P[page] = step
            if parent_P[page] == OUT:
                stack_P[free] = page
                free += 1
            else:
                worth_P[page] = age_P[page]
                count += 1
    for i in range(len(pages) - 1, -1, -1):
        page = pages[i]
        leaf = references_P[page] == 0 and fanout_P[page] == 0 and parent_P[page] != OUT
        if leaf and stamp_P[page] == 0:
            push(heap, page, worth_P[page])
    return count, free


@checked
def leave(
    nodes: Nodes, references_P: np.ndarray, last_used_P: np.ndarray, stack_P: np.ndarray,
    pages: np.ndarray, step: int, free: int, kept: np.ndarray,
) -> tuple[int, int]:  # fmt: skip
    """One holder less for each of distinct `pages`. Those that nobody holds now were last used in
    `step`; of the tree they go into `kept`, others onto `stack_P`, which has `free`.

    Returns how many were kept, and how many are free then.
    """
    count, parent_P = 0, nodes.parent_P
    for i in range(len(pages)):
        page = pages[i]
        references_P[page] -= 1
        if references_P[page] == 0:
            last_used_P[page] = step
            if parent_P[page] == OUT:
                stack_P[free] = page
                free += 1
            else:
                kept[count] = page
                count += 1
    return count, free
