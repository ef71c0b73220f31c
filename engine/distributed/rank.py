"""A rank's own process: joins its group over loopback, does its work, gives back its record."""

import os
import signal
import socket
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from multiprocessing import parent_process
from multiprocessing.connection import Connection, wait
from typing import Any

import torch
import torch.distributed as dist

from engine.core.confined.parting import end_with_launcher
from engine.core.errors import BadInput
from engine.core.events import AnyEvent
from engine.distributed import heartbeats
from engine.distributed.device import DeviceKind, device_of, nccl_group
from engine.distributed.faults import PeerGone, told
from engine.distributed.merge import lane
from engine.distributed.record import Record, encode
from engine.distributed.transport import Transport

LOOPBACK = "127.0.0.1"
LOOK = "check MASTER_ADDR and MASTER_PORT, and that the machine there can be reached"
SLACK = 5.0  # seconds
BEAT = 0.25  # seconds between signs of life


@dataclass(frozen=True, slots=True)
class Starter:
    """The way to whoever started a rank. `say`: what it is doing, shown where it dies or hangs
    there; `tell`: a record on the way; `asked`: whether a person asked the ranks to stop."""

    say: Callable[[str], None] = lambda text: None
    tell: Callable[[Record], None] = lambda record: None
    asked: Callable[[], bool] = lambda: False


ALONE = Starter()


class Rank:
    """What a rank's work is given: who it is, its transport, its clock, where its events go."""

    def __init__(self, transport: Transport, starter: Starter, meeting: "Meeting") -> None:
        self.transport, self.record = transport, Record(transport.rank)
        self.device = meeting.device
        self.starter, self.meeting = starter, meeting
        self._say, self._phase = starter.say, "starting"
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

    def tell(self) -> None:
        """Send whoever watches what was emitted and moved since the last time; forget it here."""
        events, sent, received = self.record.events, self.transport.sent, self.transport.received
        self.starter.tell(Record(self.rank, events, sent, received, done=False))
        self.record.events = []
        self.transport.forget()

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
    local: int = 0  # which of the machine's ranks this is
    here: int = 1  # how many ranks the machine has
    device: DeviceKind = "cpu"


def store(
    address: str, port: int, ranks: int | None, master: bool, within: timedelta, **more: Any
) -> dist.TCPStore:
    """What ranks find one another by. Raises BadInput where it cannot be reached or held there."""
    try:
        return dist.TCPStore(address, port, ranks, master, within, wait_for_workers=False, **more)
    except RuntimeError as fault:
        hint = "is the loopback interface up?" if address == LOOPBACK else LOOK
        said = f"{address}:{port}: ranks cannot meet there ({told(fault)}); {hint}"
        raise BadInput(said) from None


class Meeting:
    """Where ranks find one another to make groups, and the seconds that any message may take.

    Raises BadInput where the place's device is not there, or nobody can meet there.
    """

    def __init__(self, place: Place, limit: float) -> None:
        self.device = device_of(place.device, place.local, place.here)
        self.within = timedelta(seconds=limit)
        master = place.rank == 0 and not place.hosted
        self.store = store(place.address, place.port, place.ranks, master, self.within)
        near = place.address in (LOOPBACK, "localhost")
        self.here = LOOPBACK if near else facing(place.address, place.port)
        self._counts: Counter[str] = Counter()

    def count(self, name: str) -> int:
        """How often this was asked of that name before: ranks that do the same agree on it."""
        self._counts[name] += 1
        return self._counts[name] - 1

    def group(self, name: str, rank: int, ranks: int) -> Any:
        """A gloo group in which this process is `rank`; all of its ranks give it the same name."""
        return self.group_at(dist.PrefixStore(name, self.store), rank, ranks)

    def collective(self, name: str, rank: int, ranks: int) -> Any:
        """The same for tensors on the ranks' devices."""
        if self.device.type == "cpu":
            return self.group(name, rank, ranks)
        return nccl_group(dist.PrefixStore(name, self.store), rank, ranks, self.within)

    def group_at(self, store: dist.Store, rank: int, ranks: int) -> Any:
        """A gloo group; its connections are bound to where the meeting place is reached from.

        Raises PeerGone where not all of its ranks come.
        """
        make = dist.ProcessGroupGloo
        options = make._Options()  # type: ignore[attr-defined]
        options._timeout = self.within
        options._devices = [make.create_device(hostname=self.here)]
        try:
            return make(store, rank, ranks, options)
        except RuntimeError as fault:
            raise PeerGone(-1, f"no connection from {self.here}: {told(fault)}") from None


def facing(address: str, port: int) -> str:
    """This machine's own address on the way there. Its name may stand for loopback, as on Debian,
    where others do not reach it. Raises BadInput where there is no way."""
    try:
        kind, _, _, _, there = socket.getaddrinfo(address, port, type=socket.SOCK_DGRAM)[0]
        with socket.socket(kind, socket.SOCK_DGRAM) as asking:
            asking.connect(there)  # sends nothing
            return str(asking.getsockname()[0])
    except OSError as fault:
        raise BadInput(f"{address}: cannot be reached from here ({fault}); {LOOK}") from None


def join(place: Place, limit: float, starter: Starter = ALONE) -> Rank:
    """This process as a rank: connected, its clock set to rank 0's, second nought agreed on."""
    torch.set_num_threads(1)
    meeting = Meeting(place, limit)
    group = meeting.group("ranks", place.rank, place.ranks)
    transport = Transport(group, place.rank, place.ranks, meeting.device)
    rank = Rank(transport, starter, meeting)
    rank.transport.align()
    rank.transport.barrier()
    rank.transport.open()
    return rank


def main(place: Place, limit: float, lines: heartbeats.Heartbeats, pipe: Connection, work: Work,
         given: Any) -> None:  # fmt: skip
    """A launched process from beginning to end; leaves without the teardown that could hang."""
    # A terminal's Ctrl-C, its end, and a scheduler's request to end go to all processes of a run:
    # the launcher alone answers it, by asking its ranks to stop or by SIGKILL.
    for request in ("SIGINT", "SIGTERM", "SIGHUP"):
        if hasattr(signal, request):
            signal.signal(getattr(signal, request), signal.SIG_IGN)
    end_with_launcher()
    threading.Thread(target=show_life, args=(lines, place.rank), daemon=True).start()
    record = Record(place.rank)
    try:
        # The parent tells of a hang at the limit; the group would only hide who it was.
        starter = Starter(
            lambda text: heartbeats.write(lines, place.rank, text),
            lambda told: pipe.send_bytes(encode(told)),
            lambda: bool(lines.stop[0]),
        )
        rank = join(place, limit + SLACK, starter)
        record = rank.record
        work(rank, given)
        rank.transport.finish()
        record.sent, record.received = rank.transport.sent, rank.transport.received
    except PeerGone as fault:
        record.failed, record.peer = fault.told, fault.peer
    except BadInput as fault:
        record.failed, record.refused = str(fault), True
    except BaseException as fault:
        # Whatever it was, the parent has to hear of it: this process says no more.
        record.failed = f"{type(fault).__name__}: {fault}"
    pipe.send_bytes(encode(record))
    pipe.close()
    os._exit(0)


def show_life(lines: heartbeats.Heartbeats, rank: int) -> None:
    """Show signs of life, and end with the parent."""
    parent = parent_process()
    while parent is None or not wait([parent.sentinel], BEAT):
        lines.beats[rank] = time.monotonic()
        if parent is None:
            time.sleep(BEAT)
    os._exit(1)
