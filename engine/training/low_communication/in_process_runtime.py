"""In-process runtime: runs all replicas' programs cooperatively in one process; a sent tensor is
buffered until its receiver asks. Gradients due at the same moment are computed in one pass.

On the wall clock a turn lasts as long as it lasts; on a virtual one computations and messages take
what is described, though the tensors are just as real. Emits the events of real ranks.
"""

import heapq
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from torch import Tensor

from engine.core.clock import WallClock
from engine.core.errors import BadInput
from engine.core.events import AnyEvent, Span
from engine.core.tags import tag
from engine.distributed.merge import lane, moved
from engine.distributed.program import Compute, Program, Receive, Send, Wait
from engine.hardware.link import Link
from engine.training.low_communication.executor import computed
from engine.training.low_communication.replica import Gradient, gradients

Message = tuple[int, int, int]  # source, target, and which of the messages between them


@dataclass(frozen=True)
class Described:
    """A described network. `seconds` of a computation; every replica has one port out, a `link`."""

    seconds: Callable[[Compute], float]
    link: Link


@dataclass
class InProcessRuntime:
    """`watch(now)` is called after each computation. `described` is None on the wall clock."""

    programs: Sequence[Program[None]]
    emit: Callable[[AnyEvent], Any]
    watch: Callable[[float], None]
    described: Described | None = None
    clock: WallClock = field(default_factory=WallClock)

    def __post_init__(self) -> None:
        count = len(self.programs)
        self.times, self.turns = [0.0] * count, [0] * count
        self.answers: list[Any] = [None] * count
        self.port = [0.0] * count  # when each may send again
        self.numbers: defaultdict[tuple[str, int, int], int] = defaultdict(int)
        self.arrived: dict[Message, tuple[float, list[Tensor]]] = {}
        self.waiting: dict[int, Receipt] = {}
        self.held: list[tuple[float, int, AnyEvent]] = []  # not yet due on the virtual clock
        self.ready = [(0.0, rank) for rank in range(count)]
        self.asked: list[tuple[float, int, Gradient]] = []  # since when, by whom
        self.left = count
        self.emitted = 0

    def run(self) -> None:
        """Until all programs have ended. Raises BadInput where all that are left wait."""
        while self.ready or self.asked:
            if self.asked and (not self.ready or self.ready[0][0] > self.asked[-1][0]):
                self._together()
                continue
            before, rank = heapq.heappop(self.ready)
            self.flush(before if self.described else float("inf"))
            self._go(rank)
        self.flush(float("inf"))
        if self.left:
            told = ", ".join(f"{r} for {w.source} ({w.task})" for r, w in self.waiting.items())
            raise BadInput(f"replicas: each waits for a message never sent: {told}")

    def _now(self, rank: int) -> float:
        return self.times[rank] if self.described else self.clock.now()

    def _go(self, rank: int) -> None:
        """Steps of one replica, up to a computation or a message that is not there."""
        while True:
            try:
                step = self.programs[rank].send(self.answers[rank])
            except StopIteration:
                self.left -= 1
                return
            self.answers[rank] = None
            if isinstance(step, Gradient):
                self.asked.append((self._turn(rank), rank, step))
                return
            if isinstance(step, Compute):
                start = self._now(rank)
                self._computed(rank, step, step.work(), start)
                return
            if isinstance(step, Send):
                self._send(rank, step)
            elif isinstance(step, Receive):
                number = self._number("in", step.source, rank)
                self.answers[rank] = Receipt(step.source, number, step.task)
            elif isinstance(step, Wait):
                self.waiting[rank] = step.ticket
                if not self._deliver(rank):
                    return
                if self.described:
                    self._again(rank)
                    return

    def _turn(self, rank: int) -> float:
        """Who is lowest goes first."""
        return self.times[rank] if self.described else float(self.turns[rank])

    def _again(self, rank: int) -> None:
        heapq.heappush(self.ready, (self._turn(rank), rank))

    def _together(self) -> None:
        """The gradients that were asked for, in one pass."""
        asked, self.asked = self.asked, []
        starts = [self._now(rank) for _, rank, _ in asked]
        losses = gradients([step for _, _, step in asked])
        for (_, rank, step), start, loss in zip(asked, starts, losses, strict=True):
            self._computed(rank, step, loss, start)

    def _computed(self, rank: int, step: Compute, answer: Any, start: float) -> None:
        self.answers[rank] = answer
        if self.described:
            self.times[rank] += self.described.seconds(step)
        self.turns[rank] += 1
        now = self._now(rank)
        grade = "modelled" if self.described else ""
        self._keep(computed(lane(rank), step, answer, start, now, grade))
        self.watch(now if not self.described else start)
        self._again(rank)

    def _send(self, source: int, step: Send) -> None:
        size, start = sum(tensor.nbytes for tensor in step.tensors), self._now(source)
        tensors = [tensor.detach().clone() for tensor in step.tensors]
        stop = self._now(source)
        if self.described:
            start = max(start, self.port[source])
            self.port[source] = start + size / self.described.link.bandwidth
            stop = self.port[source] + self.described.link.latency
        grade = "modelled" if self.described else ""
        self._keep(moved(source, step.target, size, start, stop, step.task, grade))
        number = self._number("out", source, step.target)
        self.arrived[source, step.target, number] = (stop, tensors)
        if step.target in self.waiting and self._deliver(step.target):
            self._again(step.target)

    def _deliver(self, rank: int) -> bool:
        """Give a waiting replica its message, where that is known of."""
        ticket = self.waiting[rank]
        found = self.arrived.pop((ticket.source, rank, ticket.number), None)
        if found is None:
            return False
        del self.waiting[rank]
        arrival, self.answers[rank] = found
        if self.described and arrival > self.times[rank]:
            said = tag(task=ticket.task, grade="modelled")
            self._keep([Span(arrival, lane(rank), "receive", self.times[rank], tag=said)])
            self.times[rank] = arrival
        return True

    def _number(self, way: str, source: int, target: int) -> int:
        number = self.numbers[way, source, target]
        self.numbers[way, source, target] += 1
        return number

    def _keep(self, events: Sequence[AnyEvent]) -> None:
        for event in events:
            heapq.heappush(self.held, (event.time, self.emitted, event))
            self.emitted += 1

    def flush(self, until: float) -> None:
        """Emit what no replica can precede any more."""
        while self.held and self.held[0][0] <= until:
            self.emit(heapq.heappop(self.held)[2])


@dataclass(frozen=True, slots=True)
class Receipt:
    """A posted receive: the `number`-th message from `source`."""

    source: int
    number: int
    task: str
