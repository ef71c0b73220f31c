"""Peers that are killed, hang, leave and join: nothing is lost, nothing is counted twice.

What came out is computed again in one process from the ledger alone, bit for bit. Each fault of the
mechanism is found out, by the peers' digests or by that.
"""

import os
import signal
import time

import pytest

from engine.core.errors import BadInput
from engine.training.low_communication.churn.coordinator import Coordinator, PeersDiffer
from engine.training.low_communication.churn.peer import Task
from engine.training.low_communication.churn.replay import replayed
from engine.training.low_communication.methods.diloco import DiLoCo
from tests.engine.training.low_communication.small import small

LIMIT = 300.0  # seconds of a busy machine


def task(fault="none"):
    learning = small().learning
    return Task(DiLoCo(every=2), learning, seats=4, steps=10_000, fault=fault)


def lost_while_others_wait(run, number):
    """An outer step in which a peer is gone after the others have asked for its share."""
    os.kill(run.seats[number].process.pid, signal.SIGSTOP)
    since = time.monotonic()

    def poll():
        if time.monotonic() - since > 0.3 and number in run.seats:
            run.kill(number)

    run.poll = poll
    outer = run.outer_step()
    run.poll = lambda: None
    return outer


def lived_through(fault="none"):
    """A run in which one is lost, one joins with the state, one leaves."""
    with Coordinator(task(fault), LIMIT, judge=1) as run:
        for _ in range(3):
            run.join()
        run.wait(3)
        run.outer_step()
        assert lost_while_others_wait(run, 2).members == (0, 1)
        run.join()
        run.join()
        run.wait(4)
        run.outer_step()
        run.leave(0)
        run.outer_step()
        run.outer_step()
        assert run.lost == [2]
    return run.ledger


def test_the_rest_go_on_and_nothing_is_lost_or_counted_twice():
    ledger = lived_through()
    assert [outer.members for outer in ledger] == [
        (0, 1, 2), (0, 1), (0, 1, 2, 3), (1, 2, 3), (1, 2, 3)
    ]  # fmt: skip
    assert [outer.joined for outer in ledger] == [(0, 1, 2), (), (2, 3), (), ()]
    assert [outer.tries for outer in ledger] == [1, 2, 1, 1, 1]
    assert list(replayed(task(), ledger)) == [outer.digest for outer in ledger]
    losses = [outer.loss for outer in ledger]
    assert losses == sorted(losses, reverse=True), "the loss goes on falling"


@pytest.mark.parametrize("fault", ["own_weights", "no_momentum"])
def test_a_newcomer_that_begins_elsewhere_is_found_out(fault):
    with pytest.raises(PeersDiffer, match="the state before outer step 2"):
        lived_through(fault)


@pytest.mark.parametrize("fault", ["twice", "forgets"])
def test_a_change_counted_twice_or_lost_is_found_out(fault):
    ledger = lived_through(fault)
    same = [a == b.digest for a, b in zip(replayed(task(), ledger), ledger, strict=True)]
    assert same == [True, False, False, False, False]


def test_a_peer_that_hangs_is_ended_and_the_last_one_is_missed():
    with Coordinator(task(), LIMIT) as run:
        run.join()
        run.join()
        run.wait(2)
        run.outer_step()
        run.limit = 5.0
        os.kill(run.seats[0].process.pid, signal.SIGSTOP)
        assert run.outer_step().members == (1,)
        last = run.seats[1].process
        run.kill(1)
        with pytest.raises(BadInput, match="nobody is left who has the state of outer step 2"):
            run.outer_step()
    assert last.exitcode is not None


def test_no_more_peers_than_seats():
    with Coordinator(task(), LIMIT) as run:
        for _ in range(4):
            run.join()
        with pytest.raises(BadInput, match="all 4 seats are taken"):
            run.join()
