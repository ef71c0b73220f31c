"""Eviction policies: which cached page that nobody holds goes first when pages run short."""

from abc import abstractmethod
from dataclasses import dataclass
from typing import Literal

import numpy as np

from engine.core.config import Policy
from engine.core.memory import demand_zeros

FAR = 2**62  # a step that never comes


@dataclass(slots=True)
class Ages:
    """What is known of every page, by page number. Steps count from the start of the run."""

    last_used: np.ndarray  # int64, the latest step in which somebody held it
    born: np.ndarray  # int64, the step in which it was filled
    uses: np.ndarray  # int64, how often somebody joined it
    soon: np.ndarray  # int64, FAR less the step in which the plan needs it next; 0 is never

    @classmethod
    def of(cls, pages: int) -> "Ages":
        """Ages of `pages` pages that nobody has used."""
        return cls(
            last_used=demand_zeros(pages, np.int64),
            born=demand_zeros(pages, np.int64),
            uses=demand_zeros(pages, np.int64),
            soon=demand_zeros(pages, np.int64),
        )


class Eviction(Policy):
    """Among the leaves of the prefix tree that nobody holds, the least worth goes first."""

    folder = "engine.cache.eviction"

    @abstractmethod
    def worth(self, pages: np.ndarray, ages: Ages) -> np.ndarray:
        """How much each of the pages is worth (float64), asked when its last holder leaves it.

        Minus infinity: not worth keeping at all, so it is freed at once.
        """

    def age(self, ages: Ages) -> np.ndarray | None:
        """What is known of pages that is their worth itself; None where it is not so simple."""
        return None

    @abstractmethod
    def reason(self, page: int, ages: Ages, step: int) -> str:
        """Why this page goes, as the end of a sentence."""


def counted(number: int, noun: str) -> str:
    """A number and its noun: 1 step, 2 steps."""
    return f"{number} {noun}{'s' * (number != 1)}"


class FirstInFirstOut(Eviction):
    """The oldest page goes first, however often it was used since."""

    kind: Literal["fifo"] = "fifo"

    def worth(self, pages: np.ndarray, ages: Ages) -> np.ndarray:
        return ages.born[pages].astype(np.float64)

    def age(self, ages: Ages) -> np.ndarray | None:
        return ages.born

    def reason(self, page: int, ages: Ages, step: int) -> str:
        return f"oldest, filled {counted(step - int(ages.born[page]), 'step')} ago"


class LeastRecentlyUsed(Eviction):
    """The page that has been idle longest goes first."""

    kind: Literal["lru"] = "lru"

    def worth(self, pages: np.ndarray, ages: Ages) -> np.ndarray:
        return ages.last_used[pages].astype(np.float64)

    def age(self, ages: Ages) -> np.ndarray | None:
        return ages.last_used

    def reason(self, page: int, ages: Ages, step: int) -> str:
        return f"least recently used, {counted(step - int(ages.last_used[page]), 'step')} idle"


RECENCY = 1e-12  # breaks ties between pages used equally often: the longer idle goes first


class LeastFrequent(Eviction):
    """The page that fewest requests have joined goes first; among equals the longest idle."""

    kind: Literal["least_frequent"] = "least_frequent"

    def worth(self, pages: np.ndarray, ages: Ages) -> np.ndarray:
        return ages.uses[pages] + RECENCY * ages.last_used[pages]

    def reason(self, page: int, ages: Ages, step: int) -> str:
        return f"least often used, {counted(int(ages.uses[page]), 'time')}"


class FurthestNextUse(Eviction):
    """The page whose next planned use lies furthest ahead goes first; without one, at once.

    With the whole job known up front this is Belady's rule on the planned order (BatchLLM, arXiv
    2412.03594: a shared prefix stays exactly as long as its group needs it).
    """

    kind: Literal["next_use"] = "next_use"

    def worth(self, pages: np.ndarray, ages: Ages) -> np.ndarray:
        soon = ages.soon[pages]
        return np.where(soon <= 0, -np.inf, (soon - FAR).astype(np.float64))

    def reason(self, page: int, ages: Ages, step: int) -> str:
        ahead = FAR - int(ages.soon[page])
        return (
            "the plan has no more use for it" if ahead >= FAR else f"needed last, by number {ahead}"
        )
