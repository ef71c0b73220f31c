"""Beginnings: which hash of its beginning a prompt is known by, of those that its router makes.

A beginning that many of the last requests had would meet too few replicas, so these are told apart
by more of their tokens, as in DualMap: by the shortest that at most two requests in `replicas` had.
"""

from collections import Counter, deque

import numpy as np

from engine.fleet.routers.router import Router


class Beginnings:
    """Counts the beginnings of a router's last requests."""

    def __init__(self, router: Router) -> None:
        self.router = router
        self.last: deque[tuple[int, ...]] = deque()
        self.count: Counter[int] = Counter()

    def key(self, prompt: np.ndarray, replicas: int) -> int:
        """The hash of a prompt that is asked now; 0 where the router makes none."""
        keys, most = self.router.keys(prompt), 2 * self.router.remembered / replicas
        if not keys:
            return 0
        self.last.append(keys)
        self.count.update(keys)
        if len(self.last) > self.router.remembered:
            for old in self.last.popleft():
                self.count[old] -= 1
                if not self.count[old]:
                    del self.count[old]
        return next((key for key in keys if self.count[key] <= most), keys[-1])
