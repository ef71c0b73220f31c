"""Two thresholds (POLCA, arXiv 2308.12908): low priority slows first, high priority last and least.

Above the first threshold replicas of low priority are capped, above the second further, and where
that has not helped those of high priority too. Caps go a margin below the threshold that set them.
"""

from typing import Literal

from engine.core.config import knob
from engine.fleet.power.power import FULL, Clocks, Power


class Polca(Power):
    """Caps by two thresholds of the row's budget and two priorities."""

    kind: Literal["polca"] = "polca"
    first: float = knob(0.80, "Low priority is capped above this of the budget", low=0.0, high=2.0)
    second: float = knob(
        0.89, "Above this low priority is capped further, then high priority", low=0.0, high=2.0
    )
    margin: float = knob(0.05, "Caps go so far below their threshold", low=0.0, high=1.0)
    low_clock: float = knob(0.904, "Low priority above the first", low=0.01, high=1.0)
    lowest_clock: float = knob(0.787, "Low priority above the second", low=0.01, high=1.0)
    high_clock: float = knob(
        0.926, "High priority, where the second is exceeded still", low=0.01, high=1.0
    )

    def clocks(self, share: float, now: Clocks) -> Clocks:
        low, high = now
        if share > self.second:
            return Clocks(self.lowest_clock, self.high_clock if low <= self.lowest_clock else high)
        if share < self.first - self.margin:
            return FULL
        if share > self.first:
            low = min(low, self.low_clock)
        if share < self.second - self.margin:
            low, high = max(low, self.low_clock), 1.0
        return Clocks(low, high)


class OneThreshold(Power):
    """Every replica is capped above one threshold, whatever its priority."""

    kind: Literal["one_threshold"] = "one_threshold"
    threshold: float = knob(0.89, "All are capped above this of the budget", low=0.0, high=2.0)
    margin: float = knob(0.05, "Caps go so far below the threshold", low=0.0, high=1.0)
    clock: float = knob(0.787, "Of every replica while capped", low=0.01, high=1.0)

    def clocks(self, share: float, now: Clocks) -> Clocks:
        if share > self.threshold:
            return Clocks(self.clock, self.clock)
        return FULL if share < self.threshold - self.margin else now


class Locked(Power):
    """Every replica at one lower clock, always: no readings, no control."""

    kind: Literal["locked"] = "locked"
    clock: float = knob(0.787, "Of every replica", low=0.01, high=1.0)

    def clocks(self, share: float, now: Clocks) -> Clocks:
        return Clocks(self.clock, self.clock)
