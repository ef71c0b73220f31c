"""Autoscaling by requests under way, or by the share of time that replicas compute."""

import math
from typing import Literal

from engine.core.config import knob
from engine.fleet.scaling.scaling import Elastic, Seen


class ByQueue(Elastic):
    """So many requests under way for each replica, as Knative counts concurrency."""

    kind: Literal["by_queue"] = "by_queue"
    target: float = knob(32.0, "Requests for a replica", low=0.01, high=1e6, unit="requests")

    def wanted(self, seen: Seen) -> int:
        return math.ceil(seen.requests / self.target)


class ByUtilisation(Elastic):
    """Replicas at work for such a share of the time, as Kubernetes' autoscaler counts.

    An engine that has one request is at work all the time: this asks for more than it needs.
    """

    kind: Literal["by_utilisation"] = "by_utilisation"
    target: float = knob(0.7, "Share of time with a step under way", low=0.01, high=1.0)
    tolerance: float = knob(0.1, "So far from it nothing changes", low=0.0, high=1.0)

    def wanted(self, seen: Seen) -> int:
        ratio = seen.utilisation / self.target
        if abs(ratio - 1) <= self.tolerance:
            return seen.serving + seen.starting
        return math.ceil(seen.serving * ratio)
