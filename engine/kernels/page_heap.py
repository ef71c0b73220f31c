"""Heap of pages by worth and then by when they came (numba); entries go stale rather than being
searched for.

Shape letters: P pages, C places of the heap.
"""

from typing import NamedTuple

import numpy as np

from engine.kernels.columns import float64s, int32s, int64s
from engine.kernels.compiled import inner


class Heap(NamedTuple):
    """Pages that can be evicted, the least worth first."""

    worth_C: np.ndarray  # float64
    stamp_C: np.ndarray  # int64: when it came
    page_C: np.ndarray  # int32
    stamp_P: np.ndarray  # int64: of each page's entry that counts, 0 for none
    counts: np.ndarray  # int64 [2]: entries, and the next stamp


@inner
def heap_at(at, n):
    """`Heap` of which the first is column n."""
    return Heap(
        float64s(at, n), int64s(at, n + 1), int32s(at, n + 2), int64s(at, n + 3), int64s(at, n + 4)
    )


@inner
def push(heap, page, worth):
    worth_C, stamp_C, page_C, stamp_P, counts = heap
    at, stamp = counts[0], counts[1]
    counts[0], counts[1] = at + 1, stamp + 1
    stamp_P[page] = stamp
    while at > 0:  # what came before with the same worth stays above
        above = (at - 1) // 2
        if worth >= worth_C[above]:
            break
        worth_C[at], stamp_C[at], page_C[at] = worth_C[above], stamp_C[above], page_C[above]
        at = above
    worth_C[at], stamp_C[at], page_C[at] = worth, stamp, page


@inner
def pop_least(heap):
    """The page worth least, stale entries left out; -1 where there is none."""
    worth_C, stamp_C, page_C, stamp_P, counts = heap
    while counts[0] > 0:
        page, stamp = page_C[0], stamp_C[0]
        last = counts[0] - 1
        counts[0] = last
        worth, came, moved, at = worth_C[last], stamp_C[last], page_C[last], 0
        while 2 * at + 1 < last:  # the last entry goes down from the top
            child = 2 * at + 1
            if child + 1 < last:
                other = child + 1
                if worth_C[other] < worth_C[child] or (
                    worth_C[other] == worth_C[child] and stamp_C[other] < stamp_C[child]
                ):
                    child = other
            if worth_C[child] > worth or worth_C[child] == worth and stamp_C[child] >= came:
                break
            worth_C[at], stamp_C[at], page_C[at] = worth_C[child], stamp_C[child], page_C[child]
            at = child
        worth_C[at], stamp_C[at], page_C[at] = worth, came, moved
        if stamp_P[page] == stamp:
            stamp_P[page] = 0
            return page
    return -1
