"""What an eviction policy is: how much a cached page that nobody holds is worth keeping."""

from abc import abstractmethod
from dataclasses import dataclass

import numpy as np

from engine.core.config import Policy

FAR = 2**62  # a step that never comes


@dataclass(slots=True)
class Ages:
    """What is known of every page, by page number. Steps count from the start of the run."""

    last_used: np.ndarray  # int64, the latest step in which somebody held it
    born: np.ndarray  # int64, the step in which it was filled
    uses: np.ndarray  # int64, how often somebody joined it
    next_use: np.ndarray  # int64, when the plan needs it next: lower is sooner, FAR is never

    @classmethod
    def of(cls, pages: int) -> "Ages":
        """Ages of `pages` pages that nobody has used."""
        return cls(
            last_used=np.zeros(pages, np.int64),
            born=np.zeros(pages, np.int64),
            uses=np.zeros(pages, np.int64),
            next_use=np.full(pages, FAR, np.int64),
        )


class Eviction(Policy):
    """Among the leaves of the prefix tree that nobody holds, the least worth goes first."""

    folder = "engine.cache.policies"

    @abstractmethod
    def worth(self, page: int, ages: Ages) -> float:
        """How much the page is worth, asked when its last holder leaves it.

        Minus infinity: not worth keeping at all, so it is freed at once.
        """

    @abstractmethod
    def reason(self, page: int, ages: Ages, step: int) -> str:
        """Why this page goes, as the end of a sentence."""


def counted(number: int, noun: str) -> str:
    """A number and its noun: 1 step, 2 steps."""
    return f"{number} {noun}{'s' * (number != 1)}"
