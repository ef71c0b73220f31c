"""Routers that look at load alone: round robin, random, least loaded, power of two choices."""

from collections.abc import Sequence
from typing import Literal

from engine.core.config import knob
from engine.fleet.routers.router import Asked, Load, Router, least


class RoundRobin(Router):
    """Each replica in turn."""

    kind: Literal["round_robin"] = "round_robin"

    def route(self, asked: Asked, loads: Sequence[Load]) -> Load:
        return loads[asked.number % len(loads)]


class Random(Router):
    """Any replica, each as likely."""

    kind: Literal["random"] = "random"

    def route(self, asked: Asked, loads: Sequence[Load]) -> Load:
        return loads[asked.draw(0, len(loads))]


class LeastLoaded(Router):
    """Whoever has the fewest requests (join the shortest queue)."""

    kind: Literal["least_loaded"] = "least_loaded"

    def route(self, asked: Asked, loads: Sequence[Load]) -> Load:
        return least(loads)


class PowerOfChoices(Router):
    """The least loaded of a few drawn ones (Mitzenmacher, IEEE TPDS 2001)."""

    kind: Literal["power_of_choices"] = "power_of_choices"
    choices: int = knob(2, "Replicas drawn", low=1, high=1024)

    def route(self, asked: Asked, loads: Sequence[Load]) -> Load:
        drawn = [asked.draw(place, len(loads)) for place in range(self.choices)]
        return least([loads[each] for each in drawn])
