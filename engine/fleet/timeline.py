"""Discrete-event clock: what is to happen, in order of time, on one virtual clock.

Things of one moment happen in the order in which they were planned, so a run is the same each time.
Readings go on while anything else is planned; those of a time in which nothing happens are skipped.
"""

import heapq
from collections.abc import Callable
from typing import Any

from engine.core.clock import VirtualClock

STILL = 100  # readings one after another that find nothing new, before the next ones are skipped


class Timeline:
    """A heap of (seconds, order of planning, what to do)."""

    def __init__(self) -> None:
        self.clock = VirtualClock()
        self._heap: list[tuple[float, int, Callable[..., object], tuple[Any, ...]]] = []
        self._planned = self._readings = 0

    @property
    def now(self) -> float:
        """Seconds since the run opened."""
        return self.clock.time

    @property
    def planned(self) -> bool:
        """Whether anything but readings is to happen still."""
        return len(self._heap) > self._readings

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

    def read(self, every: float, reading: Callable[[], bool]) -> None:
        """Call `reading` every so many seconds while anything else is planned. It returns whether
        all that follow will find what it found, until something else happens."""
        self._plan_reading(self.now + every, every, reading, 0)

    def _plan_reading(
        self, moment: float, every: float, reading: Callable[[], bool], still: int
    ) -> None:
        self._readings += 1
        self.at(moment, self._read, every, reading, still)

    def _read(self, every: float, reading: Callable[[], bool], still: int) -> None:
        self._readings -= 1
        still = still + 1 if reading() else 0
        if not self.planned:
            return
        moment = self.now + every
        if still >= STILL:  # the next is the last before anything happens
            happens = min(moment for moment, _, do, _ in self._heap if do != self._read)
            moment = max(moment, self.now + (happens - self.now) // every * every)
        self._plan_reading(moment, every, reading, still)
