"""The simulator's waits are those of queueing theory: one server, random arrivals.

Every wait is Lindley's recursion (W' = max(0, W + S - A), 1952); with --full the mean of 10^6
arrivals is within 2% of M/M/1 and M/D/1 (Kleinrock, Queueing Systems, volume 1, 1975).
"""

import numpy as np
import pytest

from engine.core.clock import VirtualClock
from engine.core.events import Branch
from engine.core.log import Log
from engine.core.run import Live
from engine.inference.engine import Engine
from engine.inference.executors.executor import Built, Facts
from engine.inference.requests.request import Request, sampling
from engine.inference.requests.step import Result
from engine.inference.run import serve
from tests.engine.inference.small import config

FEW, MANY = 3000, 10**6
AT_ONCE = 10_000  # requests made at a time, which bounds memory
LOAD = 0.7
PROMPT, ONE = np.zeros(1, np.int32), sampling(max_tokens=1)


class Server:
    """One step a request, which takes as long as was drawn for it."""

    def __init__(self, seconds: np.ndarray) -> None:
        self.seconds, self.facts = seconds, Facts("server", "none", 2, 16, 1, 1, 1.0)

    def execute(self, step):
        assert len(step.rows_B) == 1
        number = step.requests[int(step.rows_B[0])].number
        return Result(np.zeros(1, np.int32), np.zeros(1, np.float32), float(self.seconds[number]))


class Desk:
    """An engine over such a server; `left` has when each request ended.

    At every end: arrived = finished + refused + in flight.
    """

    def __init__(self, seconds: np.ndarray) -> None:
        self.came = self.over = 0
        self.left = np.full(len(seconds), np.nan)
        self.built = Built(Server(seconds), VirtualClock())
        chosen = config(max_running=1, step_tokens=1, prefix_sharing=False)
        self.engine = Engine(chosen, self.built.executor, self.built.clock, self.heard)
        self.live = Live(Log())

    def heard(self, event) -> None:
        if type(event) is Branch:
            self.came += event.state == "queued"
            self.over += event.state in ("finished", "rejected", "aborted")

    def ended(self, request: Request) -> None:
        self.left[request.number] = self.engine.clock.now()
        assert self.came == self.over + len(self.engine.requests)

    def serve(self, arrivals: np.ndarray) -> np.ndarray:
        """When each left."""
        for first in range(0, len(arrivals), AT_ONCE):
            some = arrivals[first : first + AT_ONCE].tolist()
            requests = [Request(PROMPT, ONE, arrival=at, on_end=self.ended) for at in some]
            serve(self.engine, self.built, requests, self.live)
        assert self.came == self.over == len(arrivals) and not self.engine.requests
        return self.left


def lindley(gaps: np.ndarray, seconds: np.ndarray) -> np.ndarray:
    """Each one's wait before it is served."""
    waits, wait = np.zeros(len(gaps)), 0.0
    for n in range(1, len(gaps)):
        waits[n] = wait = max(0.0, wait + seconds[n - 1] - gaps[n])
    return waits


@pytest.mark.parametrize("service", ["exponential", "constant"])
def test_waits_are_those_of_the_theory(service, full):
    count = MANY if full else FEW
    draw = np.random.default_rng(25)
    gaps = draw.exponential(1 / LOAD, count)
    seconds = draw.exponential(1.0, count) if service == "exponential" else np.ones(count)
    arrivals = np.cumsum(gaps)
    waits = Desk(seconds).serve(arrivals) - arrivals - seconds
    assert waits.min() > -1e-6, "served before it came"
    np.testing.assert_allclose(waits, lindley(gaps, seconds), atol=1e-6)
    # Pollaczek and Khinchine: rho / (1 - rho) for exponential service, half of it for constant.
    theory = LOAD / (1 - LOAD) * (1.0 if service == "exponential" else 0.5)
    if full:
        assert abs(waits.mean() / theory - 1) < 0.02, waits.mean()
