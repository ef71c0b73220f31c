"""Autoscaling policy of a fleet: how many replicas it wants, by what it sees of their load."""

from abc import abstractmethod
from typing import Literal, NamedTuple

from engine.core.config import Policy, knob


class Seen(NamedTuple):
    """What a reading tells."""

    now: float  # seconds
    serving: int  # replicas that take requests
    starting: int
    requests: int  # arrived and not over
    utilisation: float  # of the serving replicas since the last reading: share of time with a step


class Scaling(Policy):
    """How many replicas serve. A fleet's `replicas` are the most there can be."""

    folder = "engine.fleet.scaling"

    @property
    def scales(self) -> bool:
        """Whether replicas are started and stopped at all."""
        return True

    @abstractmethod
    def wanted(self, seen: Seen) -> int:
        """Replicas to have, those that start counted; the fleet keeps it within its bounds."""


class Fixed(Scaling):
    """Every replica serves from the start to the end."""

    kind: Literal["fixed"] = "fixed"

    @property
    def scales(self) -> bool:
        return False

    def wanted(self, seen: Seen) -> int:
        return seen.serving + seen.starting


class Elastic(Scaling):
    """Replicas that are started and stopped; one is paid for from when it starts until it is empty.

    One that starts takes `startup` until it serves, its cache empty. One that stops gets no new
    requests and ends those it has. The fleet shrinks only to the most that was wanted within
    `cooldown`, as the stabilisation window of Kubernetes' autoscaler has it.
    """

    least: int = knob(1, "Replicas that always serve", low=1, high=100_000)
    first: int = knob(1, "Replicas that serve at the start", low=1, high=100_000)
    every: float = knob(2.0, "Between readings of the load", low=1e-3, high=1e4, unit="s")
    startup: float = knob(
        30.0, "Until a replica that starts can serve", low=0.0, high=1e5, unit="s"
    )
    cooldown: float = knob(
        60.0, "A need that was there so long ago keeps replicas", low=0.0, high=1e6, unit="s"
    )
