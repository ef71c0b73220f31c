"""Exposed communication: waits in a log of ranks that no work hides, and bytes by link."""

from collections import defaultdict

from engine.core.events import Move, Span
from engine.core.log import Log


def exposed(log: Log) -> dict[str, float]:
    """Seconds each rank's lane spent waiting for messages; of ranks that waited or worked."""
    found: dict[str, float] = {}
    for span in log.of(Span):
        if span.lane.startswith("rank "):
            found.setdefault(span.lane, 0.0)
            if span.name == "receive":
                found[span.lane] += span.stop - span.start
    return found


def worked(log: Log) -> dict[str, float]:
    """Seconds each rank's lane computed."""
    found: dict[str, float] = {}
    for span in log.of(Span):
        if span.lane.startswith("rank ") and span.name != "receive":
            found[span.lane] = found.get(span.lane, 0.0) + span.stop - span.start
    return found


def sent(log: Log) -> dict[tuple[str, str], float]:
    """Bytes from one rank to another, by (source, target)."""
    found: defaultdict[tuple[str, str], float] = defaultdict(float)
    for move in log.of(Move):
        found[move.source, move.target] += move.bytes
    return dict(found)
