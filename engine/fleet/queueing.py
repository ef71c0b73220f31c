"""Queueing theory of a fleet: servers with drawn service times on its clock, and closed forms.

The same timeline, routers and loads as a fleet's, with a queue in place of an engine, so that means
can be held against M/M/1, M/D/1, M/M/k and M/G/1. Times in seconds.
"""

import math
from collections import deque
from typing import NamedTuple

import numpy as np

from engine.fleet.routers.router import Asked, Load, Router
from engine.fleet.timeline import Timeline

NOBODY = np.zeros(0, np.int32)


class Waited(NamedTuple):
    """Seconds each of N customers waited before service, and how many were ever lost count of."""

    wait_N: np.ndarray
    unaccounted: int  # most that arrived, had not left and were nowhere, at any moment


class _Server:
    """`slots` customers at once, the others in order of arrival."""

    def __init__(self, number: int, slots: int) -> None:
        self.load = Load(number, lambda prompt: 0)
        self.slots, self.serving = slots, 0
        self.queue: deque[int] = deque()


def waits(
    arrival_N: np.ndarray, service_N: np.ndarray, servers: int, slots: int, router: Router,
    seed: int = 0,
) -> Waited:  # fmt: skip
    """Every customer sent by `router` to one of `servers` queues of `slots` places each."""
    timeline = Timeline()
    arrival, service = arrival_N.tolist(), service_N.tolist()
    all_servers = [_Server(number, slots) for number in range(servers)]
    loads = [each.load for each in all_servers]
    began = [0.0] * len(arrival)
    left = worst = 0

    def come(number: int) -> None:
        nonlocal worst
        if number + 1 < len(arrival):
            timeline.at(arrival[number + 1], come, number + 1)
        server = all_servers[0]
        if servers > 1:
            chosen = router.route(Asked(number, NOBODY, seed, timeline.now), loads)
            server = all_servers[chosen.number]
        server.load.requests += 1
        if server.serving < server.slots:
            start(server, number)
        else:
            server.queue.append(number)
        if number % 1024 == 0:
            there = sum(each.serving + len(each.queue) for each in all_servers)
            worst = max(worst, abs(number + 1 - left - there))

    def start(server: _Server, number: int) -> None:
        server.serving += 1
        began[number] = timeline.now
        timeline.at(timeline.now + service[number], leave, server)

    def leave(server: _Server) -> None:
        nonlocal left
        left += 1
        server.serving -= 1
        server.load.requests -= 1
        if server.queue:
            start(server, server.queue.popleft())

    if arrival:
        timeline.at(arrival[0], come, 0)
    while timeline.advance():
        pass
    return Waited(np.array(began) - arrival_N, worst)


def mm1(rate: float, service: float) -> float:
    """Mean wait in M/M/1: rho S / (1 - rho)."""
    rho = rate * service
    return rho * service / (1 - rho)


def mg1(rate: float, mean: float, squared: float) -> float:
    """Mean wait in M/G/1 (Pollaczek and Khinchine); `squared`: mean square of service times."""
    return rate * squared / (2 * (1 - rate * mean))


def mmk(rate: float, service: float, slots: int) -> float:
    """Mean wait in M/M/k: Erlang's C times S / (k - a), with a = rate S."""
    offered = rate * service
    terms = [offered**n / math.factorial(n) for n in range(slots)]
    full = offered**slots / math.factorial(slots) * slots / (slots - offered)
    return full / (sum(terms) + full) * service / (slots - offered)
