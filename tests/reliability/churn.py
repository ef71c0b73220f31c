"""Peers that come and go at random, by PCCL's rule: every half to two seconds one is started with
60% and one killed with 40%, of ten at most; now and then one leaves by itself.

PCCL's stress test: https://github.com/PrimeIntellect-ai/pccl. Who is drawn is a seed's; what the
others are doing at that moment is the machine's, so the ledger says what came of it.
"""

import random
import time
from dataclasses import dataclass, field

from engine.training.low_communication.churn.coordinator import Coordinator

MOST, FIRST = 10, 3
SPAWN, LEAVE = 0.6, 0.1
STRIKES = 0.3  # with which what is due happens now and not at the next look: in any phase


@dataclass
class Churn:
    """`apart`: seconds between two events, the least and the most. `joined`, `killed`, `left`: how
    many did so far."""

    run: Coordinator
    draw: random.Random
    apart: tuple[float, float]
    due: float = 0.0
    joined: int = 0
    killed: int = 0
    left: int = 0
    struck: set[int | None] = field(default_factory=set)  # process numbers

    def begin(self) -> None:
        for _ in range(FIRST):
            self.run.join()
        self.run.wait(FIRST)
        self.run.poll = self.poll

    def poll(self) -> None:
        if time.monotonic() >= self.due and self.draw.random() < STRIKES:
            self.due = time.monotonic() + self.draw.uniform(*self.apart)
            self._strike()

    def _strike(self) -> None:
        seats = self.run.seats
        if self.draw.random() < SPAWN:
            if len(seats) < MOST:
                self.run.join()
                self.joined += 1
            return
        # The last who has the state stays: without it there is no run to go on with.
        living = {n for n, seat in seats.items() if seat.process.pid not in self.struck}
        able = [n for n in sorted(self.run.current & living) if not seats[n].leaving]
        if len(able) < 2:
            return
        number = self.draw.choice(able)
        if self.draw.random() < LEAVE:
            self.run.leave(number)
            self.left += 1
        else:
            self.struck.add(seats[number].process.pid)
            self.run.kill(number)
            self.killed += 1
