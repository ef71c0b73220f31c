"""Queues on the fleet's timeline against theory, and an engine that is such a queue."""

import numpy as np
import pytest

from engine.core.config import update
from engine.core.run import Run
from engine.fleet.config import FleetConfig
from engine.fleet.life import ARRIVAL, STARTED
from engine.fleet.queueing import mg1, mm1, mmk, waits
from engine.fleet.routers.by_load import LeastLoaded, PowerOfChoices, Random, RoundRobin
from engine.fleet.run import REQUESTS, run

BUSY = 0.7


def drawn(count: int) -> tuple[np.ndarray, np.ndarray]:
    """Arrivals at rate BUSY, and service times of mean 1."""
    random = np.random.default_rng(0)
    return np.cumsum(random.exponential(1 / BUSY, count)), random.exponential(1, count)


def test_waits_are_those_of_theory(full):
    """Within 2% over a million arrivals; over fewer, within what so many scatter."""
    count, within = (10**6, 0.02) if full else (60_000, 0.1)
    arrival, service = drawn(count)
    one = RoundRobin()
    for found, theory in (
        (waits(arrival, service, 1, 1, one), mm1(BUSY, 1)),
        (waits(arrival, np.ones(count), 1, 1, one), mg1(BUSY, 1, 1)),
        (waits(arrival / 4, service, 1, 4, one), mmk(4 * BUSY, 1, 4)),
    ):
        assert found.wait_N.mean() == pytest.approx(theory, rel=within)
        assert found.unaccounted == 0


def test_routers_that_know_more_wait_less():
    arrival, service = drawn(20_000)
    means = [
        waits(arrival / 8, service, 8, 1, router).wait_N.mean()
        for router in (LeastLoaded(), PowerOfChoices(), Random())
    ]
    assert means[0] < 0.6 * means[1] < 0.6 * 0.6 * means[2]
    # Each of eight queues under random routing is an M/M/1 of its own.
    assert means[2] == pytest.approx(mm1(BUSY, 1), rel=0.15)


def test_an_engine_of_one_row_is_a_queue_of_its_own_steps():
    """With one request at a time its waits are Lindley's recursion over its own service times."""
    changes = {
        "replicas": 1,
        "tokens": False,
        "engine.max_running": 1,
        "engine.workload.count": 60,
        "engine.workload.rate": 8.0,
        "engine.workload.prompt": {"median": 20},
        "engine.workload.output": {"median": 12, "spread": 0.5},
    }
    log = Run.execute(run, update(FleetConfig(), changes)).log
    table = log.blobs[REQUESTS]
    arrival, started, ended = table[ARRIVAL], table[STARTED], table[3]
    service = ended - started
    wait = 0.0
    for number in range(1, len(arrival)):
        wait = max(0.0, wait + service[number - 1] - (arrival[number] - arrival[number - 1]))
        assert started[number] - arrival[number] == pytest.approx(wait, abs=1e-9)
