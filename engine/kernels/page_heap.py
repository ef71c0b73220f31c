"""Heap of pages by worth and then by when they came (numba); entries go stale rather than being
searched for.

Shape letters: P pages, C places of the heap.
"""

from typing import NamedTuple

import numpy as np

from engine.kernels.compiled import inner


class Heap(NamedTuple):
    """Pages that can be evicted, the least worth first."""

    worth_C: np.ndarray  # float64
    stamp_C: np.ndarray  # int64: when it came
    page_C: np.ndarray  # int32
    stamp_P: np.ndarray  # int64: of each page's entry that counts, 0 for none
    counts: np.ndarray  # int64 [2]: entries, and the next stamp


@inner
def _before(heap, a, b):
    if heap.worth_C[a] != heap.worth_C[b]:
        return heap.worth_C[a] < heap.worth_C[b]
    return heap.stamp_C[a] < heap.stamp_C[b]


@inner
def _swap(heap, a, b):
    heap.worth_C[a], heap.worth_C[b] = heap.worth_C[b], heap.worth_C[a]
    heap.stamp_C[a], heap.stamp_C[b] = heap.stamp_C[b], heap.stamp_C[a]
    heap.page_C[a], heap.page_C[b] = heap.page_C[b], heap.page_C[a]


@inner
def push(heap, page, worth):
    at, stamp = heap.counts[0], heap.counts[1]
    heap.counts[0], heap.counts[1] = at + 1, stamp + 1
    heap.worth_C[at], heap.stamp_C[at], heap.page_C[at] = worth, stamp, page
    heap.stamp_P[page] = stamp
    while at > 0 and _before(heap, at, (at - 1) // 2):
        _swap(heap, at, (at - 1) // 2)
        at = (at - 1) // 2


@inner
def pop_least(heap):
    """The page worth least, stale entries left out; -1 where there is none."""
    while heap.counts[0] > 0:
        page, stamp = heap.page_C[0], heap.stamp_C[0]
        last = heap.counts[0] - 1
        heap.counts[0] = last
        _swap(heap, 0, last)
        at = 0
        while 2 * at + 1 < last:
            child = 2 * at + 1
            if child + 1 < last and _before(heap, child + 1, child):
                child += 1
            if not _before(heap, child, at):
                break
            _swap(heap, at, child)
            at = child
        if heap.stamp_P[page] == stamp:
            heap.stamp_P[page] = 0
            return page
    return -1
