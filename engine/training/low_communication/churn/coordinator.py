"""Coordinator of peers that come and go: who takes part in an outer step, and when it is settled.

It holds no weights. An outer step is settled once every living peer of its world has the mean; a
world that broke before is made again of those who live, and they exchange the same changes. Whoever
joins is let in between two outer steps, with the state of a peer that has it.
"""

import atexit
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess

from torch import distributed as dist

from engine.core.errors import BadInput
from engine.distributed import heartbeats
from engine.distributed.launch import listen, server
from engine.distributed.rank import LOOPBACK
from engine.training.low_communication.churn.orders import (
    Answer,
    Commit,
    Exchange,
    Leave,
    Meet,
    Order,
    Train,
    decode_answer,
    encode,
)
from engine.training.low_communication.churn.peer import Task, main

TICK = 0.05  # seconds between two looks at what else is to be done
MOST = 100  # tries of one outer step


class PeersDiffer(BadInput):
    """Peers that should hold the same bits do not."""


@dataclass(frozen=True)
class Outer:
    """An outer step that was settled. `members`: the seats of those whose changes are in its mean,
    in order of rank; `joined`: those of them who began with it; `tries`: worlds that it took;
    `digest`: of the state after it, the same on all who live; `loss`: their mean by held-out text,
    0 where nobody was asked; `seconds`: when, since the run began."""

    members: tuple[int, ...]
    joined: tuple[int, ...]
    tries: int
    digest: str
    loss: float
    seconds: float


@dataclass
class Seat:
    """A peer from outside. `ready`: it has built its replica; `leaving`: it goes at the next
    chance."""

    number: int
    process: BaseProcess
    pipe: Connection
    ready: bool = False
    leaving: bool = False


@dataclass
class Coordinator:
    """A run of peers. `limit`: seconds without a sign of life before a peer counts as gone; `poll`
    is called all the while and may have peers join, leave or die.

    `with` it: whatever happens, no process is left.
    """

    task: Task
    limit: float = 60.0
    judge: int = 0  # outer steps between judgements by held-out text
    poll: Callable[[], object] = lambda: None
    ledger: list[Outer] = field(default_factory=list)
    seats: dict[int, Seat] = field(default_factory=dict)
    world: int = 0
    members: list[int] = field(default_factory=list)  # of this world, in order of rank
    current: set[int] = field(default_factory=set)  # who has the state of the last outer step
    lost: list[int] = field(default_factory=list)  # who went without being asked

    def __enter__(self) -> "Coordinator":
        meeting = listen(0)
        self.port = meeting.getsockname()[1]
        self.store = dist.TCPStore(
            LOOPBACK, self.port, None, True, timedelta(seconds=self.limit), wait_for_workers=False,
            master_listen_fd=meeting.detach(),
        )  # fmt: skip
        self.context, self.begun = server(main.__module__), time.monotonic()
        self.lines = heartbeats.heartbeats(self.context, self.task.seats)
        atexit.register(self._end)
        return self

    def __exit__(self, *_: object) -> None:
        atexit.unregister(self._end)
        self._end()
        del self.store

    def join(self) -> int:
        """Start a peer on a free seat; it is let in once it is ready. Raises BadInput where all
        are taken."""
        free = [number for number in range(self.task.seats) if number not in self.seats]
        if not free:
            raise BadInput(f"churn: all {self.task.seats} seats are taken; give more seats")
        ours, theirs = self.context.Pipe()
        self.lines.beats[free[0]] = time.monotonic()
        process = self.context.Process(  # type: ignore[attr-defined]
            target=main, args=(self.task, free[0], self.port, self.lines, theirs), daemon=True,
            name=f"peer {free[0]}",
        )  # fmt: skip
        process.start()
        theirs.close()
        self.seats[free[0]] = Seat(free[0], process, ours)
        return free[0]

    def leave(self, number: int) -> None:
        """Have a peer go after the outer step that it is in."""
        self.seats[number].leaving = True

    def kill(self, number: int) -> None:
        """SIGKILL, as if its machine were gone; found out by what it does not say."""
        self.seats[number].process.kill()

    def wait(self, count: int) -> None:
        """Until so many are ready. Raises BadInput where they are not within the limit."""
        until = time.monotonic() + self.limit
        while sum(seat.ready for seat in self.seats.values()) < count:
            self._hear(TICK)
            if time.monotonic() > until:
                raise BadInput(f"churn: fewer than {count} peers were ready in {self.limit:g} s")

    def outer_step(self) -> Outer:
        """One more outer step. Raises BadInput where nobody is left who has the state."""
        round, tries = len(self.ledger), 1
        self._let_go()
        joined = self._gather(round, newcomers=True)
        said = self._ask(dict.fromkeys(self.members, Train(round)))
        while not said or not all(each.whole for each in said.values()):
            self._gather(round, newcomers=False)
            said = self._ask(dict.fromkeys(self.members, Exchange(round)))
            tries += 1
            self._bounded(tries, round)
        _same(said, f"the mean of outer step {round}")
        judge = bool(self.judge) and (round + 1) % self.judge == 0
        done = self._ask(dict.fromkeys(said, Commit(judge)))
        self._bounded(tries, round)
        digest = _same(done, f"the state after outer step {round}")
        loss = sum(each.loss for each in done.values()) / len(done)
        seconds = time.monotonic() - self.begun
        self.ledger.append(Outer(tuple(self.members), joined, tries, digest, loss, seconds))
        return self.ledger[-1]

    def _let_go(self) -> None:
        """Who is to leave goes, as long as somebody stays."""
        for number in sorted(self.current):
            seat = self.seats[number]
            if seat.leaving and len(self.current) > 1:
                self._send(seat, Leave())
                seat.process.join(self.limit)
                self._gone(seat)

    def _gather(self, round: int, newcomers: bool) -> tuple[int, ...]:
        """A world of all who have the state, and of those who are ready to get it; these are given
        back. Where nobody came or went the world is as it was."""
        for tries in range(MOST):
            self._hear(0.0)
            ready = sorted(seat.number for seat in self.seats.values() if seat.ready)
            fresh = [n for n in ready if n not in self.current] if newcomers else []
            self._bounded(tries, round, fresh if round == 0 else [])
            whole = sorted({*self.current, *fresh})
            if whole == self.members and not fresh:
                return ()
            self.world += 1
            # Before the first outer step all have the same, of one seed.
            told = [whole.index(number) for number in fresh] if round else []
            source = whole.index(min(self.current)) if round else 0
            said = self._ask({
                number: Meet(self.world, rank, len(whole), source, told, round)
                for rank, number in enumerate(whole)
            })  # fmt: skip
            self.members = []
            if len(said) == len(whole) and all(each.whole for each in said.values()):
                _same(said, f"the state before outer step {round}")
                self.members, self.current = whole, set(whole)
                return tuple(fresh)
        raise BadInput(f"churn: no world came about before outer step {round} in {MOST} tries")

    def _bounded(self, tries: int, round: int, others: Sequence[int] = ()) -> None:
        if not self.current and not others:
            raise BadInput(f"churn: nobody is left who has the state of outer step {round}")
        if tries > MOST:
            raise BadInput(f"churn: outer step {round} was not settled in {MOST} tries")

    def _ask(self, orders: Mapping[int, Order]) -> dict[int, Answer]:
        """What those who live answer."""
        asked = {n: self.seats[n] for n in orders if n in self.seats}
        for number, seat in asked.items():
            self._send(seat, orders[number])
        found: dict[int, Answer] = {}

        def here(number: int) -> bool:  # and not another on the same seat
            return self.seats.get(number) is asked[number]

        while any(here(number) and number not in found for number in asked):
            found |= self._hear(TICK)
        return {number: each for number, each in found.items() if here(number)}

    def _hear(self, seconds: float) -> dict[int, Answer]:
        """What arrives within `seconds`; who is heard first is ready, who is cut off is gone. Who
        hangs is ended, so that others do not wait for it."""
        self.poll()
        for seat in self.seats.values():
            if time.monotonic() - self.lines.beats[seat.number] > self.limit:
                seat.process.kill()
        of = {seat.pipe: seat for seat in self.seats.values()}
        found = {}
        for pipe in wait(list(of), seconds):
            seat = of[pipe]  # type: ignore[index]
            try:
                said = decode_answer(seat.pipe.recv_bytes())
            except (EOFError, OSError):
                self.lost.append(seat.number)
                self._gone(seat)
                continue
            if seat.ready:
                found[seat.number] = said
            seat.ready = True
        return found

    def _send(self, seat: Seat, order: Order) -> None:
        with suppress(OSError):  # who is gone is found out by what is heard
            seat.pipe.send_bytes(encode(order))

    def _gone(self, seat: Seat) -> None:
        del self.seats[seat.number]
        self.current.discard(seat.number)
        seat.process.kill()
        seat.process.join()
        seat.pipe.close()

    def _end(self) -> None:
        for seat in self.seats.values():
            seat.process.kill()
        for seat in list(self.seats.values()):
            self._gone(seat)


def _same(said: Mapping[int, Answer], what: str) -> str:
    """The digest of all. Raises PeersDiffer where they are not one."""
    found = {number: each.digest for number, each in said.items()}
    if len(set(found.values())) != 1:
        raise PeersDiffer(f"churn: peers differ in {what}: {found}")
    return next(iter(found.values()))
