"""Idle pages: cached ones that nobody holds, in the order in which they are evicted."""

import heapq

from engine.cache.eviction import Ages, Eviction


class Idle:
    """A heap of evictable leaves by worth; entries go stale rather than being searched for."""

    def __init__(self, pages: int, policy: Eviction, ages: Ages) -> None:
        self.policy, self.ages = policy, ages
        self._heap: list[tuple[float, int, int]] = []  # worth, stamp, page
        self._stamps: list[int] = [0] * pages  # 0: not here
        self._next = 1

    def add(self, page: int) -> bool:
        """Put a page up for eviction; False where it is not worth keeping at all."""
        worth = self.policy.worth(page, self.ages)
        if worth == float("-inf"):
            self._stamps[page] = 0
            return False
        self._stamps[page] = self._next
        heapq.heappush(self._heap, (worth, self._next, page))
        self._next += 1
        if len(self._heap) > 4 * len(self._stamps) + 64:
            self._heap = [e for e in self._heap if self._stamps[e[2]] == e[1]]
            heapq.heapify(self._heap)
        return True

    def discard(self, page: int) -> None:
        """The page is held again, or gone."""
        self._stamps[page] = 0

    def pop(self) -> int:
        """The page worth least. Raises IndexError where there is none."""
        while True:
            _, stamp, page = heapq.heappop(self._heap)
            if self._stamps[page] == stamp:
                self._stamps[page] = 0
                return page

    def __contains__(self, page: int) -> bool:
        return self._stamps[page] != 0
