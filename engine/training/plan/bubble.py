"""Pipeline bubble in figures, every denominator named.

Idle time is what ranks spend on no pass, from the first pass of any rank to the last of any. Taken
as a share of the total time it is (p - 1) / (m + p - 1) for 1F1B with free transfers; of the ideal
time, which is the passes' own, (p - 1) / m. Zero-bubble papers count each rank from its own first
pass to its last, since the next iteration may begin on one rank before the last has ended.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from engine.core.events import Event, Span
from engine.core.log import Log
from engine.core.tags import facts

PASSES = ("F", "B", "I", "W")


@dataclass(frozen=True)
class Bubble:
    """`seconds`: first pass to last. Shares between 0 and 1 (`of_ideal` may exceed 1)."""

    seconds: float
    of_total: float
    of_ideal: float
    of_longest_rank: float  # as arXiv 2401.10241, section 5.3 counts: (cost - m T) / cost


def bubble(rank: np.ndarray, start: np.ndarray, stop: np.ndarray) -> Bubble:
    """From every pass's rank (numbered from 0), start and stop in seconds."""
    if not len(rank):
        return Bubble(0.0, 0.0, 0.0, 0.0)
    ranks = int(rank.max()) + 1
    begun, ended = np.full(ranks, np.inf), np.full(ranks, -np.inf)
    np.minimum.at(begun, rank, start)
    np.maximum.at(ended, rank, stop)
    worked = float((stop - start).sum()) / ranks
    seconds = float(ended.max() - begun.min())
    own = float((ended - begun).max())
    if worked <= 0:
        return Bubble(seconds, 0.0, 0.0, 0.0)
    return Bubble(seconds, 1 - worked / seconds, seconds / worked - 1, 1 - worked / own)


def of_log(log: Log, grade: str = "") -> Bubble:
    """The bubble of the passes in a log that are of this grade, whoever ran them."""
    return of_spans(log.of(Span), grade)


def of_spans(events: Iterable[Event], grade: str = "") -> Bubble:
    """The bubble of the passes among these events; `grade`: "modelled" for those of the clock that
    stand beside measured ones."""
    spans = [
        event
        for event in events
        if isinstance(event, Span)
        and event.name in PASSES
        and facts(event.tag).get("grade", "") == grade
    ]
    lanes = {lane: place for place, lane in enumerate(dict.fromkeys(s.lane for s in spans))}
    return bubble(
        np.array([lanes[span.lane] for span in spans], np.int64),
        np.array([span.start for span in spans]),
        np.array([span.stop for span in spans]),
    )
