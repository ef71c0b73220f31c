"""Executor: does a system's work, for real (tensors, wall clock) or modelled (virtual clock).

Every part that can do both has a base of its own under this one, concrete ones in its folder
`executors`, and a knob `executor` whose first kinds are `real` and `modelled`.
"""

from typing import ClassVar

from engine.core.clock import Clock, VirtualClock, WallClock
from engine.core.policy import Policy


class Executor(Policy):
    """`real`: whether this machine does the work; else a described one is asked how long it takes,
    and no time measured here is among what comes out."""

    real: ClassVar[bool] = True

    def clock(self) -> Clock:
        """The clock that events are under, begun now."""
        return WallClock() if self.real else VirtualClock()
