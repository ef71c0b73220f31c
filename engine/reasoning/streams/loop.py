"""The loop of all runs of streams: whatever can be written now is written in one forward pass.

In come sessions (problems under way, each with streams of its own); it ends when all are over.
"""

from collections.abc import Callable, Sequence
from typing import Protocol

import numpy as np

from engine.core.clock import Clock
from engine.core.events import Branch
from engine.reasoning.streams.caches import Feed, Stream, StreamCaches


class Session(Protocol):
    """One problem under way."""

    @property
    def over(self) -> bool:
        """Whether there is nothing left to write."""

    @property
    def streams(self) -> Sequence[Stream]:
        """Its streams, in the order of their lanes."""

    def due(self) -> float:
        """When it will have something to write at the latest (s); asked where it has nothing."""

    def feeds(self, now: float) -> list[Feed]:
        """What can be written at `now`; all of it is."""

    def take(self, feed: Feed, logits_V: np.ndarray, now: float) -> None:
        """One of these has been written: the logits after it."""


def go(
    sessions: Sequence[Session], caches: StreamCaches, clock: Clock,
    poll: Callable[[float], object], lasts: float,
) -> None:  # fmt: skip
    """Pass after pass until all sessions are over; waits where there is nothing to write.

    A pass lasts `lasts` seconds on a virtual clock. `poll` is called before each.
    """
    emit, begun = caches.emit, set[Stream]()
    for session in sessions:
        for stream in session.streams:
            emit(Branch(clock.now(), stream.name, "", "queued"))
    while alive := [session for session in sessions if not session.over]:
        now = clock.now()
        poll(now)
        planned = [(session, feed) for session in alive for feed in session.feeds(now)]
        if not planned:
            clock.wait_until(min(session.due() for session in alive))
            continue
        for _, feed in planned:
            if feed.stream not in begun:
                begun.add(feed.stream)
                emit(Branch(now, feed.stream.name, "", "running"))
        logits_RV = caches.write([feed for _, feed in planned], lasts)
        now = caches.ended
        for (session, feed), logits_V in zip(planned, logits_RV, strict=True):
            session.take(feed, logits_V, now)
        for session in alive:
            if session.over:
                for stream in session.streams:
                    caches.close(stream)
                    emit(Branch(clock.now(), stream.name, "", "finished", "all is answered"))
