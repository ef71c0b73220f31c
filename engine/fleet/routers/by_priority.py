"""Router by priority: workloads of low and of high priority have replicas of their own."""

import math
from collections.abc import Sequence
from typing import Literal

from engine.core.config import knob
from engine.fleet.routers.router import Asked, Load, Router, least

DRAW = 6  # of a request's draws, the one that says whose it is
FINE = 1 << 20


class ByPriority(Router):
    """The least loaded of the replicas of a request's workload; of all where those are dead."""

    kind: Literal["by_priority"] = "by_priority"
    share: float = knob(0.5, "Of requests, and of replicas, of low priority", low=0.0, high=1.0)

    def low_priority(self, number: int) -> bool:
        return math.floor((number + 1) * self.share) > math.floor(number * self.share)

    def route(self, asked: Asked, loads: Sequence[Load]) -> Load:
        low = asked.draw(DRAW, FINE) < self.share * FINE
        own = [load for load in loads if self.low_priority(load.number) == low]
        return least(own or loads)
