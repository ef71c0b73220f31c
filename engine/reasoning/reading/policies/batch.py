"""Batch thinking: read everything, then think."""

from collections.abc import Sequence
from typing import Literal

from engine.reasoning.reading.policy import ReadingPolicy


class Batch(ReadingPolicy):
    """No thought before the input is whole; every thought sees all of it."""

    kind: Literal["batch"] = "batch"

    def sees(self, unit: int, ends: Sequence[int], arrived: int) -> int | None:
        """All of the input, once it has arrived."""
        return ends[-1] if arrived >= ends[-1] else None
