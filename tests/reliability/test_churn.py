"""A training whose peers come and go: it goes on, all who live hold the same bits, and those are
what one process computes from who took part in which outer step.

As long as --soak says with --full.
"""

import itertools
import random
import sys
import time

from engine.training.low_communication.churn.coordinator import Coordinator
from engine.training.low_communication.churn.peer import Task
from engine.training.low_communication.churn.replay import replayed
from engine.training.low_communication.methods.diloco import DiLoCo
from tests.engine.training.low_communication.small import small
from tests.reliability.churn import MOST, Churn

APART, SOON = (0.5, 2.0), (0.2, 0.6)
PACE = 0.2  # seconds between outer steps of the soak: what it costs to compute it again
PROGRESS = 60.0
TASK = Task(DiLoCo(every=2), small().learning, seats=MOST, steps=10**9, within=5.0)
STEPS, FEW = 8, 2


def let_in(ledger):
    return sum(len(outer.joined) for outer in ledger[1:])


def test_training_goes_on_while_peers_come_and_go(request, full):
    seconds = request.config.getoption("--soak") if full else 0.0
    with Coordinator(TASK, judge=10 if full else 1) as run:
        churn = Churn(run, random.Random(17), APART if full else SOON)
        churn.begin()
        begun = time.monotonic()
        while (
            len(run.ledger) < STEPS
            or time.monotonic() - begun < seconds
            or min(churn.killed, let_in(run.ledger)) < FEW
        ):
            run.outer_step()  # raises where peers do not hold the same bits
            time.sleep(PACE if full else 0.0)
    ledger = run.ledger
    apart = [b.seconds - a.seconds for a, b in itertools.pairwise(ledger)]
    again = sum(outer.tries > 1 for outer in ledger)
    sys.stdout.write(
        f"{len(ledger)} outer steps, {churn.joined} started, {churn.killed} killed, {churn.left} "
        f"left, {let_in(ledger)} let in, {again} steps exchanged again, "
        f"{max(apart):.1f} s the longest\n"
    )
    assert max(apart) < PROGRESS
    assert list(replayed(TASK, ledger)) == [outer.digest for outer in ledger]
    losses = [outer.loss for outer in ledger if outer.loss]
    assert losses[-1] < losses[0]
    if full:
        assert again and churn.left, "nobody was lost while others waited for it, or left"
