"""Intervals of a serving run's figures: operators' errors carried to its steps, then to its times.

Errors of operators of one kind go together, those of different kinds apart: an average step's
interval is the root of the sum of squares of its parts'. The run is then played with all steps that
much shorter and longer; of a long one, its first requests, for the ratio to the same played as is.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from engine.inference.serving_time.replica import HOST, Replicas, Times

KINDS = {
    "embedding": "embedding", "norms": "norm", "attention": "decode", "experts": "experts",
    "all_reduce": "collective", "gather": "collective", "expert_exchange": "collective",
    "stages": "collective", "bubble": "collective",
}  # fmt: skip
BESIDE = 0.03  # of a step: what runs of one engine differ by, which no operator shows
MEASURED = 0.03  # of an operator whose own profile is asked
UNKNOWN = 0.3  # of one without a known interval
HALF_HOST = 0.5  # of the host's time
SAMPLE = 1500  # requests that are played shorter and longer

Requests = tuple[np.ndarray, np.ndarray, np.ndarray]
Figure = Callable[[Times], float]


@dataclass(frozen=True, slots=True)
class Interval:
    """A run's times, and those of (a part of) it with steps as they are, shorter and longer."""

    times: Times
    same: Times
    short: Times
    long: Times
    low: float  # of a step, over its predicted time
    high: float

    def of(self, figure: Figure) -> tuple[float, float, float]:
        """A figure, and the ends between which it is to be found."""
        value, same = figure(self.times), figure(self.same)
        ends = sorted(value * figure(each) / same if same else value
                      for each in (self.short, self.long))  # fmt: skip
        return value, min(ends[0], value), max(ends[1], value)


def step_interval(replicas: Replicas, times: Times) -> tuple[float, float]:
    """Between which factors of its predicted time an average step is to be found."""
    found, total = replicas.constants, sum(times.parts.values())
    kinds: dict[str, float] = {}
    for name, seconds in times.parts.items():
        kind = name if name == HOST else KINDS.get(name, "matmul")
        kinds[kind] = kinds.get(kind, 0.0) + seconds / total
    low = high = BESIDE**2
    for kind, share in kinds.items():
        known = found.interval(kind) if found is not None else None
        if kind == HOST:
            ends = HALF_HOST, HALF_HOST
        elif replicas.run.cluster.profile and kind != "collective":
            ends = MEASURED, MEASURED
        elif known is None:
            ends = UNKNOWN, UNKNOWN
        else:
            ends = 1 - math.exp(-known.high), math.exp(-known.low) - 1
        low, high = low + (share * ends[0]) ** 2, high + (share * ends[1]) ** 2
    return max(0.05, 1 - math.sqrt(low)), 1 + math.sqrt(high)


def played(replicas: Replicas, requests: Requests) -> Interval:
    """The run, with its interval."""
    arrival, prompt, answer = requests
    times = replicas.times(arrival, prompt, answer)
    low, high = step_interval(replicas, times)
    part = arrival[:SAMPLE], prompt[:SAMPLE], answer[:SAMPLE]
    same = times if len(arrival) <= SAMPLE else replicas.times(*part)
    short, long = (replicas.times(*part, slower=factor) for factor in (low, high))
    return Interval(times, same, short, long, low, high)
