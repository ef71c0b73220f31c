"""The two clocks a run can be under: the wall, and a virtual one that its executor moves."""

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
