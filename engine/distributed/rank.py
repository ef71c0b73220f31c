"""A rank's own process: joins its group over loopback, does its work, gives back its record."""

import os
import threading
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from multiprocessing import parent_process
from multiprocessing.connection import Connection, wait
from typing import Any

import torch
import torch.distributed as dist

from engine.core.events import AnyEvent
from engine.distributed import board
from engine.distributed.faults import PeerGone
from engine.distributed.merge import lane
from engine.distributed.record import Record, encode
from engine.distributed.transport import Transport

LOOPBACK = "127.0.0.1"
SLACK = 5.0  # seconds


class Rank:
    """What a rank's work is given: who it is, its transport, its clock, where its events go."""

    def __init__(self, transport: Transport, say: Callable[[str], None]) -> None:
        self.transport, self.record = transport, Record(transport.rank)
        self._say, self._phase = say, "starting"
        transport.say = self._wait

    @property
    def rank(self) -> int:
        return self.transport.rank

    @property
    def ranks(self) -> int:
        return self.transport.ranks

    @property
    def lane(self) -> str:
        return lane(self.rank)

    def now(self) -> float:
        """Seconds since the run opened, the same on all ranks."""
        return self.transport.now()

    def emit(self, event: AnyEvent) -> None:
        self.record.events.append(event)

    def enter(self, phase: str) -> None:
        """Say what is being done, such as "forward": told where this rank dies or hangs there."""
        self._phase = phase
        self._say(f"in {phase}")

    def _wait(self, text: str) -> None:
        self._say(f"{text} in {self._phase}" if text else f"in {self._phase}")


Work = Callable[[Rank, Any], None]


@dataclass(frozen=True)
class Place:
    """Where a rank stands and where its group meets, as torchrun tells it."""

    rank: int
    ranks: int
    address: str
    port: int
    hosted: bool = True  # somebody else holds the store; else rank 0 does


def group(place: Place, limit: float) -> Any:
    """A gloo group; its connections are bound to loopback where the meeting place is."""
    within = timedelta(seconds=limit)
    master = place.rank == 0 and not place.hosted
    store = dist.TCPStore(place.address, place.port, place.ranks, master, within,
                          wait_for_workers=False)  # fmt: skip
    options = dist.ProcessGroupGloo._Options()  # type: ignore[attr-defined]
    options._timeout = within
    near = place.address in (LOOPBACK, "localhost")
    make = dist.ProcessGroupGloo
    options._devices = [
        make.create_device(hostname=LOOPBACK) if near else make.create_default_device()
    ]
    named = dist.PrefixStore("ranks", store)
    return dist.ProcessGroupGloo(named, place.rank, place.ranks, options)


def join(place: Place, limit: float, say: Callable[[str], None] = lambda text: None) -> Rank:
    """This process as a rank: connected, its clock set to rank 0's, second nought agreed on."""
    torch.set_num_threads(1)
    rank = Rank(Transport(group(place, limit), place.rank, place.ranks), say)
    rank.transport.align()
    rank.transport.barrier()
    rank.transport.open()
    return rank


def main(place: Place, limit: float, lines: board.Board, pipe: Connection, work: Work,
         given: Any) -> None:  # fmt: skip
    """A launched process from beginning to end; leaves without the teardown that could hang."""
    threading.Thread(target=_end_with_parent, daemon=True).start()
    record = Record(place.rank)
    try:
        # The parent tells of a hang at the limit; the group would only hide who it was.
        rank = join(place, limit + SLACK, lambda text: board.write(lines, place.rank, text))
        record = rank.record
        work(rank, given)
        rank.transport.finish()
        record.sent, record.received = rank.transport.sent, rank.transport.received
    except PeerGone as fault:
        record.failed, record.peer = f"lost rank {fault.peer} ({fault})", fault.peer
    except BaseException as fault:
        # Whatever it was, the parent has to hear of it: this process says no more.
        record.failed = f"{type(fault).__name__}: {fault}"
    pipe.send_bytes(encode(record))
    pipe.close()
    os._exit(0)


def _end_with_parent() -> None:
    parent = parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os._exit(1)
