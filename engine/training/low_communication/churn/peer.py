"""A peer's process: learns alone, exchanges in the world it is told of, applies what is settled.

What it has changed since the last outer step is held until the coordinator says that every living
peer has the mean: an exchange that broke is done again from the same numbers, in a smaller world.
"""

import os
import signal
import threading
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Literal

import torch
from torch import Tensor

from engine.distributed import rank as ranks
from engine.distributed.faults import Garbled
from engine.distributed.heartbeats import Heartbeats
from engine.distributed.program import Program, shapes_of
from engine.distributed.rank import ALONE, LOOPBACK, Meeting, Rank
from engine.distributed.real import follow
from engine.distributed.transport import Transport
from engine.training.loop.learning_rate import learning_rate
from engine.training.low_communication.churn.orders import (
    Answer,
    Commit,
    Exchange,
    Leave,
    Meet,
    Order,
    Train,
    decode_order,
    digest,
    encode,
)
from engine.training.low_communication.mean import mean_of_all
from engine.training.low_communication.methods.diloco import DiLoCo, Nesterov
from engine.training.low_communication.replica import Learning, Place, Replica
from engine.training.low_communication.text import Text, shipped_text

Fault = Literal["none", "own_weights", "no_momentum", "twice", "forgets"]


@dataclass(frozen=True)
class Task:
    """What every peer is given. `seats`: how many parts the text has, of which each peer reads that
    of its seat; `steps`: what the learning rate goes down to; `within`: seconds that a message may
    take. `fault`: what goes wrong: newcomers keep their own weights, or begin without momentum; who
    exchanges again takes the mean twice, or has forgotten what it changed."""

    method: DiLoCo
    learning: Learning
    seats: int
    steps: int
    seed: int = 0
    within: float = 20.0
    fault: Fault = "none"


class Peer:
    """What one process knows: its replica and the outer state that all peers share."""

    def __init__(self, task: Task, seat: int, text: Text) -> None:
        self.task = task
        self.replica = Replica(task.learning, Place(seat, task.seats, task.seed), text)
        self.outer = Nesterov(self.replica.weights_P, task.method.outer_rate, task.method.momentum)
        self.gone_P = torch.zeros_like(self.replica.weights_P)
        self.mean_P: Tensor | None = None

    def steps(self, round: int) -> Program[None]:
        """Learn alone through the steps of this outer step; hold what has changed."""
        task = self.task
        every, learning = task.method.every, task.learning
        for step in range(round * every, (round + 1) * every):
            yield from self.replica.stepped(
                step,
                learning_rate(step, task.steps, learning.rate, learning.warmup, learning.decay),
            )
        self.gone_P = self.outer.weights_P - self.replica.weights_P

    def exchange(self, round: int) -> Program[None]:
        """The mean of what all in this world have changed; nothing is applied yet."""
        self.mean_P = None
        found = yield from mean_of_all(
            self.replica, self.task.method.codec, self.gone_P, f"outer/{round}"
        )
        self.mean_P = found

    def commit(self) -> None:
        """Take the outer step."""
        assert self.mean_P is not None
        self.replica.weights_P.copy_(self.outer.step(self.mean_P))
        self.mean_P = None

    def state(self) -> list[Tensor]:
        """What whoever joins has to know: outer weights and their momentum."""
        return [self.outer.weights_P, self.outer.velocity_P]

    def begin(self, weights_P: Tensor, velocity_P: Tensor) -> None:
        """Stand where the others stand."""
        if self.task.fault != "own_weights":
            self.outer.weights_P.copy_(weights_P)
            self.replica.weights_P.copy_(weights_P)
        if self.task.fault != "no_momentum":
            self.outer.velocity_P.copy_(velocity_P)


class Member:
    """A peer in the worlds that it is told of."""

    def __init__(self, peer: Peer, port: int) -> None:
        self.peer = peer
        place = ranks.Place(0, 1, LOOPBACK, port)
        self.meeting = Meeting(place, peer.task.within)
        self.rank: Rank | None = None

    def take(self, order: Order) -> Answer:
        """Do it; where a message breaks, leave the world, so that who waits here is told too."""
        try:
            return self._do(order)
        except (RuntimeError, Garbled) as fault:
            self.rank = None
            return Answer(False, why=str(fault).splitlines()[0])

    def _do(self, order: Order) -> Answer:
        peer = self.peer
        if isinstance(order, Meet):
            self._meet(order)
            return Answer(True, digest(*peer.state()))
        if isinstance(order, Train):
            self._follow(peer.steps(order.round))
        if isinstance(order, Train | Exchange):
            if isinstance(order, Exchange) and peer.task.fault == "forgets":
                peer.gone_P.zero_()
            self._follow(peer.exchange(order.round))
            assert peer.mean_P is not None
            if isinstance(order, Exchange) and peer.task.fault == "twice":
                peer.mean_P *= 2
            return Answer(True, digest(peer.mean_P))
        if isinstance(order, Commit):
            peer.commit()
        loss = peer.replica.held_out_loss() if isinstance(order, Commit) and order.judge else 0.0
        return Answer(True, digest(*peer.state()), loss)

    def _follow(self, program: Program[None]) -> None:
        assert self.rank is not None
        try:
            follow(self.rank, program)
        finally:
            program.close()
            self.rank.record.events.clear()
            self.rank.transport.forget()

    def _meet(self, order: Meet) -> None:
        self.rank = None  # its connections close
        task, peer = self.peer.task, self.peer
        group = self.meeting.group(f"world/{order.world}", order.rank, order.ranks)
        transport = Transport(group, order.rank, order.ranks)
        peer.replica.place = Place(order.rank, order.ranks, task.seed)
        name = f"state/{order.round}"
        if order.rank == order.source:
            for newcomer in order.newcomers:
                transport.send(newcomer, peer.state(), name)
        if order.rank in order.newcomers:
            coming = transport.receive(order.source, shapes_of(peer.state()), name)
            peer.begin(*transport.take(coming))
        self.rank = Rank(transport, ALONE, self.meeting)


def main(task: Task, seat: int, port: int, lines: Heartbeats, pipe: Connection) -> None:
    """A started process from beginning to end: answers once when it is ready, then each order."""
    for request in (signal.SIGINT, signal.SIGTERM):
        signal.signal(request, signal.SIG_IGN)
    threading.Thread(target=ranks.show_life, args=(lines, seat), daemon=True).start()
    torch.set_num_threads(1)
    try:
        member = Member(Peer(task, seat, shipped_text()), port)
        pipe.send_bytes(encode(Answer(True)))
        while not isinstance(order := decode_order(pipe.recv_bytes()), Leave):
            pipe.send_bytes(encode(member.take(order)))
    except (EOFError, OSError):
        pass  # whoever ordered is gone
    os._exit(0)
