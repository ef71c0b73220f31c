"""The two clocks a run can be under: the wall, and a virtual one that its executor moves.

A `StepClock` over either lets everything that one moment of a step tells carry one time.
"""

import time
from typing import Literal, Protocol


class Clock(Protocol):
    """Seconds since the run opened. `name` goes into the log's header."""

    name: Literal["wall", "virtual"]

    def now(self) -> float:
        """Seconds since the run opened."""
        ...

    def wait_until(self, moment: float) -> None:
        """Let time pass until `moment`; returns at once where that lies in the past."""
        ...


class WallClock:
    """Real time, from when this object was made."""

    name: Literal["wall", "virtual"] = "wall"

    def __init__(self) -> None:
        self.origin = time.perf_counter()

    def now(self) -> float:
        return time.perf_counter() - self.origin

    def wait_until(self, moment: float) -> None:
        left = moment - self.now()
        if left > 0:
            time.sleep(left)


class VirtualClock:
    """Time that passes only when told to: modelled work costs no waiting."""

    name: Literal["wall", "virtual"] = "virtual"

    def __init__(self) -> None:
        self.time = 0.0

    def now(self) -> float:
        return self.time

    def wait_until(self, moment: float) -> None:
        self.time = max(self.time, moment)


class StepClock:
    """A run's clock that stands still within `at`: what a step tells carries one time.

    Outside such a block it is the clock under it, so no event can carry an earlier step's time.
    """

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.name: Literal["wall", "virtual"] = clock.name
        self._held: float | None = None  # the moment it stands still at
        self._next = 0.0  # where the block about to begin lies
        self._around: list[float | None] = []  # what held before each open block

    def now(self) -> float:
        return self.clock.now() if self._held is None else self._held

    def wait_until(self, moment: float) -> None:
        self.clock.wait_until(moment)

    def at(self, moment: float) -> "StepClock":
        """Within `with clock.at(moment)` it is `moment` (seconds since the run opened)."""
        self._next = moment  # no object for each block: every step has two
        return self

    def __enter__(self) -> None:
        self._around.append(self._held)
        self._held = self._next

    def __exit__(self, *_: object) -> None:
        self._held = self._around.pop()
