"""Idle pages: cached ones that nobody holds, in the order in which they are evicted."""

import numpy as np

from engine.cache.eviction import Ages, Eviction
from engine.cache.pages import Pages
from engine.cache.prefix import PrefixTree
from engine.core.memory import demand_zeros
from engine.kernels import idle_pages
from engine.kernels.columns import addresses
from engine.kernels.compiled import settled
from engine.kernels.idle_pages import Pool
from engine.kernels.page_heap import Heap

START = 64  # places of the heap before it grows


class Idle:
    """A heap of evictable leaves of `tree` by worth; entries go stale rather than being searched
    for."""

    def __init__(self, pool: Pages, policy: Eviction, ages: Ages, tree: PrefixTree) -> None:
        pages = pool.total
        self.pool, self.policy, self.ages, self.tree = pool, policy, ages, tree
        self.worth_P = demand_zeros(pages, np.float64)  # of each when its last holder left it
        self.places = demand_zeros(pages, np.int32), demand_zeros(pages, np.bool_)  # to write into
        self.columns = Pool(
            pool.references, pool.stack, self.worth_P, ages.born, ages.last_used, ages.uses,
            ages.soon, *self.places,
        )  # fmt: skip
        self.age_P = policy.age(ages)
        counts = np.array([0, 1], np.int64)
        stamp_P = demand_zeros(pages, np.int64)
        self.heap = Heap(*_places(START), stamp_P, counts)
        self.table = self._table()  # of all columns, as kernels take them
        kernels = idle_pages.claim, idle_pages.retire, idle_pages.rest
        self._claim, self._retire, self._rest = map(settled, kernels)

    def claim(self, count: int) -> tuple[np.ndarray, int]:
        """`count` pages that are held once from now on, and how many left the tree for them;
        nothing is told of those. Raises IndexError where there are too few."""
        taken = np.empty(count, np.int32)
        given = self.tree.nodes, self.heap, self.columns, taken, self.pool.free
        self.pool.free, left = self._claim(*given)
        return taken, left

    def retire(self, pages: np.ndarray, step: int) -> int:
        """One holder less for each of distinct `pages`; returns how many of them are idle now.
        Only where worth is an age."""
        self.make_room(len(pages))
        given = self.tree.nodes, self.heap, self.columns, self.age_P, pages, step, self.pool.free
        kept, self.pool.free = self._retire(*given)
        return kept

    def weigh(self, pages: np.ndarray) -> None:
        """Ask the policy what `pages` are worth from now on."""
        self.worth_P[pages] = self.policy.worth(pages, self.ages)

    def rest(self, pages: np.ndarray, references: np.ndarray) -> list[int]:
        """`pages`, the last one first, are up for eviction where nobody holds them and nothing
        hangs under them; returns those that left the tree at once as not worth keeping."""
        self.make_room(len(pages))
        pages = np.ascontiguousarray(pages, np.int32)
        gone = self.places[0]
        given = self.tree.nodes, self.heap, references, self.worth_P, pages, gone
        return gone[: self._rest(*given)].tolist()

    def evict(self, wanted: int, references: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Pages that leave the tree so that `wanted` more are free, and whether each was evicted:
        others were not worth keeping without it. Both hold until the next call. Raises IndexError
        where there are too few."""
        nodes, (gone, evicted) = self.tree.nodes, self.places
        given = nodes, self.heap, references, self.worth_P, wanted, gone, evicted
        count = idle_pages.evict(*given)
        if count < 0:
            raise IndexError("no page is left to evict")
        return gone[:count], evicted[:count]

    def discard(self, pages: np.ndarray) -> None:
        """The pages are held again, or gone."""
        self.heap.stamp_P[pages] = 0

    def pop(self) -> int:
        """The page worth least. Raises IndexError where there is none."""
        page = int(idle_pages.pop(self.heap))
        if page < 0:
            raise IndexError("no page is idle")
        return page

    def make_room(self, more: int) -> None:
        """Places for so many entries more: stale ones go, and then the heap may grow."""
        heap = self.heap
        count, places = int(heap.counts[0]), len(heap.worth_C)
        if count + more <= places:
            return
        fresh = np.flatnonzero(heap.stamp_P[heap.page_C[:count]] == heap.stamp_C[:count])
        kept = fresh[np.lexsort((heap.stamp_C[fresh], heap.worth_C[fresh]))]  # in order: a heap
        columns = [column[kept] for column in heap[:3]]
        while 2 * (len(kept) + more) > places:
            places *= 2
        self.heap = Heap(*_places(places), heap.stamp_P, heap.counts)
        for column, old in zip(self.heap, columns, strict=False):
            column[: len(kept)] = old
        heap.counts[0] = len(kept)
        self.table = self._table()

    def _table(self) -> np.ndarray:
        return addresses((*self.tree.nodes, *self.heap, *self.columns))

    def __contains__(self, page: int) -> bool:
        return bool(self.heap.stamp_P[page])

    def __len__(self) -> int:
        """Places of the heap in use, stale ones with them."""
        return int(self.heap.counts[0])


def _places(count: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    return np.zeros(count, np.float64), np.zeros(count, np.int64), np.zeros(count, np.int32)
