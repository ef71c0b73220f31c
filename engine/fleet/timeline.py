"""Discrete-event clock: what is to happen, in order of time, on one virtual clock.

Things of one moment happen in the order in which they were planned, so a run is the same each time.
"""

import heapq
from collections.abc import Callable
from typing import Any

from engine.core.clock import VirtualClock


class Timeline:
    """A heap of (seconds, order of planning, what to do)."""

    def __init__(self) -> None:
        self.clock = VirtualClock()
        self._heap: list[tuple[float, int, Callable[..., object], tuple[Any, ...]]] = []
        self._planned = 0

    @property
    def now(self) -> float:
        """Seconds since the run opened."""
        return self.clock.time

    @property
    def planned(self) -> bool:
        """Whether anything is to happen still."""
        return bool(self._heap)

    def at(self, moment: float, do: Callable[..., object], *arguments: Any) -> None:
        """Call `do(*arguments)` at `moment`; one in the past happens now, after what is planned."""
        heapq.heappush(self._heap, (max(moment, self.clock.time), self._planned, do, arguments))
        self._planned += 1

    def advance(self) -> bool:
        """Let the next thing happen; False where nothing is left."""
        if not self._heap:
            return False
        moment, _, do, arguments = heapq.heappop(self._heap)
        self.clock.time = moment
        do(*arguments)
        return True
