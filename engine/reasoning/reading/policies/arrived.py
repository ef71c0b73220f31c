"""Thinking about all that has arrived: equal to batch thinking where the input came whole."""

from collections.abc import Sequence
from typing import Literal

from engine.reasoning.reading.policy import ReadingPolicy


class Arrived(ReadingPolicy):
    """A thought begins with its clause, but sees whatever else is there by then."""

    kind: Literal["arrived"] = "arrived"

    def sees(self, unit: int, ends: Sequence[int], arrived: int) -> int | None:
        """What has arrived, once its clause has: what a thought sees depends on the pace."""
        return arrived if arrived >= ends[min(unit, len(ends) - 1)] else None
