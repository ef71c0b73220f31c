"""The two clocks a run can be under: the wall, and a virtual one that its executor moves.

A `StepClock` over either lets everything that one moment of a step tells carry one time. What a
machine does once, whoever runs first (compiling a kernel), is `aside`: real time of a thread's runs
does not count it, or the first run on a machine would be of the compiler.
"""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal, Protocol


class Aside:
    """What one thread has spent aside: seconds in all, and since when it does (`perf_counter`),
    None while it does not. Both in one tuple: other threads read them meanwhile. `compiles`:
    since then something was not there to be loaded."""

    __slots__ = ("compiles", "state")

    def __init__(self) -> None:
        self.state: tuple[float, float | None] = (0.0, None)
        self.compiles = False

    def counted(self) -> float:
        """`perf_counter` less what was spent aside; stands still meanwhile."""
        spent, since = self.state
        return (time.perf_counter() if since is None else since) - spent


class _Threads(threading.local):
    def __init__(self) -> None:
        self.own = Aside()


_threads = _Threads()


@contextmanager
def aside() -> Iterator[None]:
    """Within the block no real time of this thread's runs passes."""
    own = _threads.own
    spent, around = own.state
    if around is None:
        own.compiles = False
        own.state = spent, time.perf_counter()
    try:
        yield
    finally:
        if around is None:
            since = own.state[1]
            own.state = spent + time.perf_counter() - (since or 0.0), None


def own() -> Aside:
    """What this thread spends aside."""
    return _threads.own


def counted() -> float:
    """Seconds as `perf_counter` counts them, less what this thread spent aside."""
    return _threads.own.counted()


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
    """Real time, from when this object was made, without what the thread that made it spends
    aside."""

    name: Literal["wall", "virtual"] = "wall"

    def __init__(self) -> None:
        self.thread = _threads.own
        self.origin = self.thread.counted()

    def now(self) -> float:
        return self.thread.counted() - self.origin

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
