"""Flow time: SRPT is the optimum, work is conserved, and nobody sees a size before its time."""

from itertools import permutations

import numpy as np
import pytest

from engine.core.clock import VirtualClock
from engine.fleet.flow_time.instances import Drawn, Unlucky
from engine.fleet.flow_time.instances import Tested as Behind
from engine.fleet.flow_time.orders import (
    Chunks,
    FirstCome,
    Job,
    LeastAttained,
    OperationSrpt,
    RoundRobin,
    Srpt,
    play,
)
from engine.fleet.flow_time.run import shape

ORDERS = [Srpt(), OperationSrpt(), Chunks(), FirstCome(), RoundRobin(), LeastAttained()]


def total(jobs: list[Job], order) -> float:
    return float(play(jobs, order, VirtualClock()).sum())


def at_once(sizes) -> list[Job]:
    return [Job(number, 0.0, tuple(each)) for number, each in enumerate(sizes)]


def test_srpt_is_the_best_of_all_sequences_of_jobs_that_come_at_once():
    sizes = [(2.0, 1.0), (0.5,), (1.0, 0.25, 0.5), (4.0,)]
    best = min(
        sum(np.cumsum([sum(sizes[place]) for place in order])) for order in permutations(range(4))
    )
    assert total(at_once(sizes), Srpt()) == pytest.approx(best)


@pytest.mark.parametrize("order", ORDERS, ids=lambda order: order.kind)
def test_all_work_is_done_and_nobody_beats_the_optimum(order):
    for made in (Drawn(jobs=25), Behind(jobs=25)):
        jobs, same = (made.made(np.random.default_rng(3)) for _ in range(2))
        ours, best = total(jobs, order), total(same, Srpt())
        assert ours >= best * (1 - 1e-9)
        assert all(job.attained == pytest.approx(sum(job.operations)) for job in jobs)
        assert all(job.ended >= job.released + sum(job.operations) - 1e-9 for job in jobs)


@pytest.mark.parametrize("order", ORDERS[1:], ids=lambda order: order.kind)
def test_what_is_not_revealed_changes_nothing_before(order):
    """Jobs whose last operations differ are served alike until one of those begins."""
    told: list[list[tuple]] = [[], []]
    for events, last in zip(told, (1.0, 9.0), strict=True):
        jobs = at_once([(1.0, 2.0, last), (1.5, 2.0, last), (0.5, 3.0, last)])

        def hear(event, events=events):
            if type(event).__name__ == "Span":
                events.append((event.start, event.time, event.lane, event.name))

        play(jobs, order, VirtualClock(), hear)
    first = [next((e for e in each if e[3] == "operation 3"), (np.inf,))[0] for each in told]
    before = [[e for e in each if e[1] <= min(first)] for each in told]
    assert before[0] == before[1]


def test_chunks_of_an_instance_are_counted():
    assert shape(at_once([(1.0, 1.0, 3.0, 2.0, 9.0), (4.0, 1.0, 1.0, 1.0)])) == (5, 3, 4)


@pytest.mark.parametrize("order", ORDERS[1:], ids=lambda order: order.kind)
def test_an_adversary_that_adapts_leaves_every_order_twice_what_had_to_be_left(order):
    """When the stream begins, and nobody could have told before: the order does the same again."""
    many = 12
    adversary = Unlucky(jobs=many, stream=1.0, adapts=True)
    left = []
    for one in (order, Srpt()):
        jobs = adversary.against(order, np.random.default_rng(0))[:many]
        play(jobs, one, VirtualClock(), stop=float(many))
        left.append(sum(np.isnan(job.ended) for job in jobs))
    assert left[0] >= 2 * (left[1] - 1)  # one may be under way
    assert left[0] >= many // 2
