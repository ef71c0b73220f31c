"""Least frequently used goes first."""

from typing import Literal

from engine.cache.eviction import Ages, Eviction, counted

RECENCY = 1e-12  # breaks ties between pages used equally often: the longer idle goes first


class LeastFrequent(Eviction):
    """The page that fewest requests have joined goes first; among equals the longest idle."""

    kind: Literal["least_frequent"] = "least_frequent"

    def worth(self, page: int, ages: Ages) -> float:
        return float(ages.uses[page]) + RECENCY * float(ages.last_used[page])

    def reason(self, page: int, ages: Ages, step: int) -> str:
        return f"least often used, {counted(int(ages.uses[page]), 'time')}"
