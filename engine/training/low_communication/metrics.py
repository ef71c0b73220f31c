"""Metrics of a low-communication training, from its log alone: loss, bytes by step, waits."""

from bisect import bisect_right
from collections import defaultdict

from engine.core.events import Level, Move, Span
from engine.core.log import Log
from engine.core.tags import facts
from engine.distributed.merge import lane


def held_out(log: Log) -> float:
    """The mean of the replicas' own held-out losses at the end, nats per character."""
    return _last(log, "held_out_loss")


def spread(log: Log) -> float:
    """How far the replicas' weights are apart at the end, over their size."""
    return _last(log, "spread")


def sent(log: Log) -> float:
    """Bytes that a replica sent on average."""
    lanes = {move.source for move in log.of(Move)}
    return sum(move.bytes for move in log.of(Move)) / max(1, len(lanes))


def sent_by_step(log: Log) -> dict[tuple[str, int], float]:
    """Bytes by (replica's lane, steps it had computed when it sent them)."""
    computed = steps(log)
    found: defaultdict[tuple[str, int], float] = defaultdict(float)
    for move in log.of(Move):
        found[move.source, bisect_right(computed[move.source], move.start)] += move.bytes
    return dict(found)


def steps(log: Log) -> dict[str, list[float]]:
    """When each replica's gradients were ready, by lane."""
    found: defaultdict[str, list[float]] = defaultdict(list)
    for span in log.of(Span):
        if span.name == "gradient":
            found[span.lane].append(span.stop)
    return found


def delays(log: Log) -> list[tuple[int, int]]:
    """For each outer step, the gradients its replica computed since it sent what was averaged, and
    how many were still to come when it sent."""
    computed = steps(log)
    left: dict[tuple[str, str], float] = {}
    for move in log.of(Move):
        task, _, round = facts(move.tag).get("task", "").rpartition("/")
        if round == "shares":
            left.setdefault((move.source, task), move.start)
    found = []
    for span in log.of(Span):
        key = span.lane, facts(span.tag).get("task", "")
        if span.name == "outer step" and key in left:
            begun, applied = (bisect_right(computed[span.lane], t) for t in (left[key], span.start))
            found.append((applied - begun, len(computed[span.lane]) - begun))
    return found


def busy(log: Log) -> float:
    """Share of the first replica's time in which it computed."""
    spans = [span for span in log.of(Span) if span.lane == lane(0)]
    computing = sum(span.stop - span.start for span in spans if span.name == "gradient")
    return computing / max(span.stop for span in spans)


def _last(log: Log, name: str) -> float:
    found = [level.value for level in log.of(Level) if level.name == name]
    return found[-1] if found else float("nan")
