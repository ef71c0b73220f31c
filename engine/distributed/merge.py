"""Merges the events of all ranks into one log in time order, each transfer once, as `Move` and
`Span`: `merged` when all have ended, `Merging` as they come in.
"""

import heapq
from collections.abc import Callable
from itertools import count

from engine.core.events import AnyEvent, Move, Span
from engine.core.tags import tag
from engine.distributed.record import Half, Record


def lane(rank: int) -> str:
    """The lane of a rank, and its name as the end of a move."""
    return f"rank {rank}"


def link_lane(source: int, target: int) -> str:
    """The lane of what travels from one rank to another."""
    return f"link {source} to {target}"


def moved(source: int, target: int, bytes: int, start: float, stop: float, task: str,
          grade: str = "") -> list[AnyEvent]:  # fmt: skip
    """A transfer as the bytes moved and as a bar in the link's lane."""
    said = tag(task=task, grade=grade)
    return [
        Move(stop, lane(source), lane(target), float(bytes), start, said),
        Span(stop, link_lane(source, target), "send", start, bytes=float(bytes), tag=said),
    ]


def merged(records: list[Record]) -> list[AnyEvent]:
    """Every rank's events and every completed transfer, in time order.

    A transfer lasts from its sender's beginning to the moment its receiver took it, which for a
    transfer that ran beside work is at most that long. One that was never taken leaves no event.
    """
    events: list[AnyEvent] = [event for record in records for event in record.events]
    begun = {(s.source, s.target, s.number): s for record in records for s in record.sent}
    for record in records:
        for half in record.received:
            start = begun[half.source, half.target, half.number].time
            # Clocks of two machines agree to within a round trip only.
            start = min(start, half.time)
            events += moved(half.source, half.target, half.bytes, start, half.time, half.task)
    return sorted(events, key=lambda event: event.time)


class Merging:
    """`emit` is given every event of `ranks` ranks and every completed transfer, in time order:
    once every rank has told of a later moment, so that none can precede it any more."""

    def __init__(self, ranks: int, emit: Callable[[AnyEvent], object]) -> None:
        self.emit = emit
        self.reached = 0.0  # seconds; nothing earlier is still to come
        self._told = [0.0] * ranks
        self._sent: dict[tuple[int, int, int], Half] = {}
        self._arrived: dict[tuple[int, int, int], Half] = {}
        self._waiting: list[tuple[float, int, AnyEvent]] = []
        self._count = count()

    def take(self, record: Record) -> None:
        """What one rank tells on the way."""
        for event in record.events:
            self._keep(event)
        self._sent |= {_key(half): half for half in record.sent}
        self._arrived |= {_key(half): half for half in record.received}
        for key in list(self._arrived.keys() & self._sent.keys()):
            left, came = self._sent.pop(key), self._arrived.pop(key)
            start = min(left.time, came.time)  # two clocks agree to within a round trip only
            for event in moved(came.source, came.target, came.bytes, start, came.time, came.task):
                self._keep(event)
        times = [event.time for event in record.events[-1:]]
        times += [half.time for half in (*record.sent[-1:], *record.received[-1:])]
        self._told[record.rank] = max([self._told[record.rank], *times])
        self._flush(min(self._told))

    def finish(self) -> None:
        """Emit what is left: nobody tells anything any more."""
        self._flush(float("inf"))

    def _keep(self, event: AnyEvent) -> None:
        heapq.heappush(self._waiting, (event.time, next(self._count), event))

    def _flush(self, until: float) -> None:
        while self._waiting and self._waiting[0][0] <= until:
            event = heapq.heappop(self._waiting)[2]
            if event.time >= self.reached:  # else a clock ran back; the log's order comes first
                self.emit(event)
                self.reached = event.time


def _key(half: Half) -> tuple[int, int, int]:
    return half.source, half.target, half.number
