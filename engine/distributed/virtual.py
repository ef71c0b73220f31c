"""Runs the programs of all ranks in one process on a virtual clock, over described links.

The rank that is earliest goes next, so messages claim links in the order in which they are sent; a
link carries one message at a time. Tensors may be real or meta. Events are those of real ranks.
"""

import heapq
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from torch import Tensor

from engine.core.errors import BadInput
from engine.core.events import AnyEvent, Level, Span
from engine.core.tags import tag
from engine.distributed.memory_tracker import MemoryTracker
from engine.distributed.merge import lane, moved
from engine.distributed.program import Compute, Program, Receive, Send, Wait
from engine.distributed.real import MEMORY
from engine.distributed.wiring import Wiring
from engine.hardware.link import Link

T = TypeVar("T")
Seconds = Callable[[Compute], float]


@dataclass(slots=True)
class Ticket:
    """A posted receive: the `number`-th message from `source`."""

    source: int
    number: int
    task: str


@dataclass(slots=True)
class _Message:
    arrival: float
    tensors: list[Tensor]


@dataclass
class Ran(Generic[T]):
    """What came of it: each rank's result and counted bytes, the events in time order."""

    results: list[T]
    events: list[AnyEvent]
    peaks: list[int]
    end: float


@dataclass
class _Rank(Generic[T]):
    program: Program[T]
    held: MemoryTracker
    time: float = 0.0
    answer: object = None
    waiting: Ticket | None = None
    result: Any = None
    done: bool = False


@dataclass
class Network:
    """Links and what they are busy with. `link`: one resource of `wiring`, one way."""

    wiring: Wiring
    link: Link
    ranks: int
    free: dict[str, float] = field(default_factory=lambda: defaultdict(float))

    def carry(self, source: int, target: int, size: float, time: float) -> tuple[float, float]:
        """(start, arrival) of a message that is ready at `time`."""
        begun = None
        for hop in self.wiring.path(source, target, self.ranks):
            start = max([time, *(self.free[name] for name in hop)])
            busy = size / self.link.bandwidth
            for name in hop:
                self.free[name] = start + busy
            time = start + busy + self.link.latency
            begun = start if begun is None else begun
        return (time if begun is None else begun), time


def play(
    programs: Sequence[Program[T]], held: Sequence[MemoryTracker], seconds: Seconds,
    network: Network, start: float = 0.0,
) -> Ran[T]:  # fmt: skip
    """Run all programs from `start` on. Raises BadInput where all that are left wait."""
    return _Play(programs, held, seconds, network, start).run()


class _Play(Generic[T]):
    def __init__(
        self, programs: Sequence[Program[T]], held: Sequence[MemoryTracker], seconds: Seconds,
        network: Network, start: float,
    ) -> None:  # fmt: skip
        pairs = zip(programs, held, strict=True)
        self.ranks = [_Rank(program, each, start) for program, each in pairs]
        self.seconds, self.network = seconds, network
        self.events: list[AnyEvent] = []
        self.messages: dict[tuple[int, int, int], _Message] = {}
        self.sent: defaultdict[tuple[int, int], int] = defaultdict(int)
        self.posted: defaultdict[tuple[int, int], int] = defaultdict(int)
        self.ready = [(start, rank) for rank in range(len(self.ranks))]

    def run(self) -> Ran[T]:
        while self.ready:
            _, rank = heapq.heappop(self.ready)
            self._go(rank)
        stuck = [rank for rank, each in enumerate(self.ranks) if not each.done]
        if stuck:
            told = ", ".join(
                f"rank {r} for rank {w.source} ({w.task})"
                for r in stuck
                if (w := self.ranks[r].waiting) is not None
            )
            raise BadInput(f"ranks: deadlock, each waits for a message never sent: {told}")
        events = sorted(self.events, key=lambda event: event.time)
        return Ran(
            [each.result for each in self.ranks],
            events,
            [each.held.peak for each in self.ranks],
            max(each.time for each in self.ranks),
        )

    def _go(self, number: int) -> None:
        """One step of a rank; it comes up again at the time the step ends."""
        rank = self.ranks[number]
        with rank.held:
            try:
                step = rank.program.send(rank.answer)
            except StopIteration as end:
                rank.result, rank.done = end.value, True
                return
            rank.answer = step.work() if isinstance(step, Compute) else None
        if isinstance(step, Compute):
            self._computed(number, step)
        elif isinstance(step, Send):
            self._send(number, step)
        elif isinstance(step, Receive):
            count = self.posted[step.source, number]
            self.posted[step.source, number] += 1
            rank.answer = Ticket(step.source, count, step.task)
        elif isinstance(step, Wait):
            rank.waiting = step.ticket
            self._deliver(number)
            return
        heapq.heappush(self.ready, (rank.time, number))

    def _computed(self, number: int, step: Compute) -> None:
        rank, start = self.ranks[number], self.ranks[number].time
        rank.time += self.seconds(step)
        said = tag(task=step.task, grade="modelled")
        self.events.append(
            Span(rank.time, lane(number), step.name, start, step.flops, step.bytes, tag=said)
        )
        self.events.append(Level(rank.time, lane(number), MEMORY, float(rank.held.alive)))

    def _send(self, source: int, step: Send) -> None:
        target, rank = step.target, self.ranks[source]
        size = sum(tensor.nbytes for tensor in step.tensors)
        start, arrival = self.network.carry(source, target, size, rank.time)
        self.events += moved(source, target, size, start, arrival, step.task, "modelled")
        number = self.sent[source, target]
        self.sent[source, target] += 1
        tensors = [tensor.detach().clone() for tensor in step.tensors]
        self.ranks[target].held.note(tensors)  # room for it was made when the receive was posted
        self.messages[source, target, number] = _Message(arrival, tensors)
        if self.ranks[target].waiting is not None:
            self._deliver(target)

    def _deliver(self, number: int) -> None:
        """Wake a waiting rank where its message is known of."""
        rank = self.ranks[number]
        ticket = rank.waiting
        assert ticket is not None
        message = self.messages.pop((ticket.source, number, ticket.number), None)
        if message is None:
            return
        rank.waiting, rank.answer = None, message.tensors
        if message.arrival > rank.time:
            said = tag(task=ticket.task, grade="modelled")
            span = Span(message.arrival, lane(number), "receive", rank.time, tag=said)
            self.events.append(span)
            rank.time = message.arrival
        heapq.heappush(self.ready, (rank.time, number))
