"""Next use of each shared prefix: tells the cache which group of a planned job needs it when."""

import heapq

from engine.cache.cache import Cache
from engine.cache.eviction import FAR
from engine.inference.requests.request import Request


class NextUse:
    """Waiting members of each group by rank; the cache learns when a prefix is next used."""

    def __init__(self, cache: Cache) -> None:
        self.cache = cache
        self._waiting: dict[int, set[int]] = {}
        self._ranks: dict[int, list[int]] = {}

    def waits(self, request: Request) -> None:
        """A member of a group waits (again)."""
        if request.group < 0:
            return
        self._waiting.setdefault(request.group, set()).add(request.rank)
        heapq.heappush(self._ranks.setdefault(request.group, []), request.rank)
        self._tell(request.group)

    def goes(self, request: Request) -> None:
        """It runs, or never will."""
        if request.group < 0:
            return
        self._waiting.get(request.group, set()).discard(request.rank)
        self._tell(request.group)

    def _tell(self, group: int) -> None:
        ranks, waiting = self._ranks.get(group, []), self._waiting.get(group, set())
        while ranks and ranks[0] not in waiting:
            heapq.heappop(ranks)
        self.cache.expect(group, ranks[0] if ranks else FAR)
