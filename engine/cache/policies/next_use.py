"""Eviction by next use: what the plan needs soonest stays; what it never needs again goes at once.

With the whole job known up front this is Belady's rule on the planned order (BatchLLM, arXiv
2412.03594: a shared prefix stays exactly as long as its group needs it).
"""

from typing import Literal

from engine.cache.eviction import FAR, Ages, Eviction


class NextUse(Eviction):
    """The page whose next planned use lies furthest ahead goes first; without one, at once."""

    kind: Literal["next_use"] = "next_use"

    def worth(self, page: int, ages: Ages) -> float:
        ahead = int(ages.next_use[page])
        return float("-inf") if ahead >= FAR else -float(ahead)

    def reason(self, page: int, ages: Ages, step: int) -> str:
        ahead = int(ages.next_use[page])
        return (
            "the plan has no more use for it" if ahead >= FAR else f"needed last, by number {ahead}"
        )
