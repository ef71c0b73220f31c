"""Spans of a rank's computation with its collectives cut out: what is left between them."""

from collections.abc import Callable
from typing import TypeVar

from engine.core.events import Span
from engine.distributed.rank import Rank

T = TypeVar("T")


def in_pieces(
    rank: Rank, name: str, act: Callable[[], T], tag: str = "", flops: float = 0.0,
    bytes: float = 0.0,
) -> T:  # fmt: skip
    """What `act` gives. Spans of that name fill the rank's lane wherever `act` left none; flops and
    bytes go to them by their lengths."""
    events = rank.record.events
    start, before = rank.now(), len(events)
    made = act()
    stop, at = rank.now(), start
    inside = [e for e in events[before:] if isinstance(e, Span) and e.lane == rank.lane]
    gaps = []
    for span in sorted(inside, key=lambda span: span.start):
        if span.start > at:
            gaps.append((at, span.start))
        at = max(at, span.stop)
    gaps.append((at, stop))
    whole = sum(end - begin for begin, end in gaps) or 1.0
    for begin, end in gaps:
        share = (end - begin) / whole
        rank.emit(Span(end, rank.lane, name, begin, share * flops, share * bytes, tag))
    return made
