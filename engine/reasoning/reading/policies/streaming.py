"""Streaming thinking: each thought follows its clause and sees nothing after it."""

from collections.abc import Sequence
from typing import Literal

from engine.reasoning.reading.policy import ReadingPolicy


class Streaming(ReadingPolicy):
    """A thought sees the input up to its clause, however much more has arrived."""

    kind: Literal["streaming"] = "streaming"

    def sees(self, unit: int, ends: Sequence[int], arrived: int) -> int | None:
        """The end of its clause, once that has arrived."""
        end = ends[min(unit, len(ends) - 1)]
        return end if arrived >= end else None
