"""Router: sends each request of a fleet to one of its replicas, by what it sees of their load."""

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import NamedTuple

import numpy as np

from engine.core.config import Policy
from engine.kernels.draws import mix, uniform

REQUESTS, THEN = attrgetter("requests"), attrgetter("tokens", "number")


@dataclass(slots=True)
class Load:
    """A replica as routers see it. Read, never written by them.

    `found(prompt)`: tokens of a prompt that its prefix tree holds now.
    """

    number: int
    found: Callable[[np.ndarray], int]
    requests: int = 0  # given to it and not over
    tokens: int = 0  # of their prompts, not computed yet
    alive: bool = True


class Asked(NamedTuple):
    """A request as routers see it."""

    number: int  # order of arrival
    prompt: np.ndarray  # int32 tokens
    seed: int  # of the run: draws depend on it and on `number`
    now: float = 0.0  # seconds
    key: int = 0  # the hash of its beginning that it is known by, of those its router makes

    def draw(self, place: int, count: int) -> int:
        """A number below `count`, of this request's `place`-th draw."""
        return int(uniform(mix(self.seed ^ 0x50F7) ^ self.number, place) * count)


class Router(Policy):
    """Which of several replicas gets a request."""

    folder = "engine.fleet.routers"

    @property
    def remembered(self) -> int:
        """Requests whose beginnings are counted."""
        return 0

    def keys(self, prompt: np.ndarray) -> tuple[int, ...]:
        """Hashes of a prompt's beginnings, of the shortest first; none by default."""
        return ()

    @abstractmethod
    def route(self, asked: Asked, loads: Sequence[Load]) -> Load:
        """One of `loads`, which are all alive and at least one."""

    def low_priority(self, number: int) -> bool:
        """Whether replica `number` serves requests of low priority alone."""
        return False

    @property
    def moving(self) -> bool:
        """Whether `moves` may ever name somebody."""
        return False

    def behind(self, load: Load) -> bool:
        """Whether requests that wait on a replica may leave it."""
        return False

    def moves(self, asked: Asked, here: Load, loads: Sequence[Load]) -> Load | None:
        """Where a request that waits `here`, and has not begun, goes instead; None: it stays."""
        return None


def least(loads: Sequence[Load]) -> Load:
    """Fewest requests, then fewest tokens to compute, then the first."""
    fewest = min(map(REQUESTS, loads))
    few = [load for load in loads if load.requests == fewest]
    return few[0] if len(few) == 1 else min(few, key=THEN)
