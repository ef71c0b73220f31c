"""Least recently used goes first."""

from typing import Literal

from engine.cache.eviction import Ages, Eviction, counted


class LeastRecentlyUsed(Eviction):
    """The page that has been idle longest goes first."""

    kind: Literal["lru"] = "lru"

    def worth(self, page: int, ages: Ages) -> float:
        return float(ages.last_used[page])

    def reason(self, page: int, ages: Ages, step: int) -> str:
        return f"least recently used, {counted(step - int(ages.last_used[page]), 'step')} idle"
