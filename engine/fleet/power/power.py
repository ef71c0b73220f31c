"""Power policy of a fleet: whose clocks are capped when the row draws much of its budget.

A row of replicas has a budget of watts. Its power is read every few seconds; caps of clocks are
asked for out of band, and reach the devices late. Above the budget the row's own brake slows every
device at once, soon and hard.
"""

from abc import abstractmethod
from typing import Literal, NamedTuple

from engine.core.config import Policy, knob


class Clocks(NamedTuple):
    """Clocks of replicas of low and of high priority, of the highest."""

    low: float
    high: float


FULL = Clocks(1.0, 1.0)


class Power(Policy):
    """What a row's devices draw, what it may draw, and who slows down."""

    folder = "engine.fleet.power"
    budget: float = knob(
        0.0, "The row's power: that of so many replicas at most; 0: power is not watched", low=0.0,
        high=1e5, unit="replicas",
    )  # fmt: skip
    memory: float = knob(
        0.75, "Drawn above idle while memory is read at its roof, of that while computing at its",
        low=0.0, high=1.0, called="Power of memory reads")  # fmt: skip
    exponent: float = knob(
        1.2, "What is drawn above idle goes with this power of the clock", low=0.0, high=4.0
    )
    every: float = knob(2.0, "Between readings of the row's power", low=1e-3, high=1e4, unit="s")
    delay: float = knob(
        40.0,
        "Until a cap that is asked for reaches the devices",
        low=0.0,
        high=1e6,
        unit="s",
        called="Delay of a cap",
    )
    brake_clock: float = knob(0.204, "Clock of every device while braked", low=0.01, high=1.0)
    brake_after: float = knob(
        5.0, "From a reading above the budget to the brake", low=0.0, high=1e9, unit="s"
    )
    brake_for: float = knob(20.0, "How long the brake is held", low=0.0, high=1e6, unit="s")
    fault: Literal["none", "alike"] = knob(
        "none", "What goes wrong: alike, answers draw what prompts do, all that there is",
        group="faults",
    )  # fmt: skip

    @abstractmethod
    def clocks(self, share: float, now: Clocks) -> Clocks:
        """Clocks to ask for when the row draws `share` of its budget and `now` is asked for."""


class BrakeOnly(Power):
    """No caps: only the brake above the budget."""

    kind: Literal["brake_only"] = "brake_only"

    def clocks(self, share: float, now: Clocks) -> Clocks:
        return FULL
