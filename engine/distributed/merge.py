"""The events of all ranks as one log in time order, each transfer once, as `Move` and `Span`."""

from engine.core.events import AnyEvent, Move, Span
from engine.core.tags import tag
from engine.distributed.record import Record


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
