"""Feeds: one view of one log, folded a slice of time at a time and shown when something changed."""

import logging
from bisect import bisect_right
from time import perf_counter, thread_time
from typing import Any

from engine.core.log import Log
from widgets.fold import Fold, History, beneath
from widgets.view import Drawing, View

CHUNK = 512  # events folded between two looks at the clock
# A drawing rests this many times as long as it took the processor, so that dear ones update less
# often. Waiting for a processor that others keep busy is not counted: that would only add to it.
REST = 2.0


class Feed:
    """Keeps `drawing` at a moment of a log. A view that fails leaves the others alone."""

    def __init__(self, view: View, drawing: Drawing | None = None) -> None:
        self.view = view
        self.drawing = drawing if drawing is not None else view.draw()
        self.log = Log()
        self.failure = ""
        self.open(self.log)

    def open(self, log: Log) -> None:
        """Read another log from its start; the drawing stays and is patched."""
        self.log = log
        self.folded = 0  # events the state stands for
        self.history: History | None = None if self.view.whole else History(log, self.view.fold())
        self.state: Fold = self.view.fold() if self.history is None else self.history.state
        self.state.blobs = log.blobs
        self.failure = ""
        self._frame: dict[str, Any] | None = None
        self._framed = -1  # events the frame stands for
        self._end: list[list[str]] = []  # the figures of the run's end, once that has been here
        self._shown: tuple[int, float] | None = None
        self._rest_until = 0.0

    def target(self, time: float, follow: bool) -> int:
        """How many events the state should stand for at a cursor."""
        if self.view.whole or follow:
            return len(self.log)
        return bisect_right(self.log.events, time, key=lambda event: event.time)

    def advance(self, time: float, follow: bool, deadline: float) -> bool:
        """Fold towards a cursor until the deadline (`perf_counter`); True once there."""
        try:
            while not self.failure:
                target = self.target(time, follow)  # a live log grows meanwhile
                if self.folded == target:
                    break
                self._fold(min(target, self.folded + CHUNK) if target > self.folded else target)
                if perf_counter() >= deadline:
                    return self.folded == target
        except Exception as fault:  # whatever a view's fold raises is that view's trouble alone
            self._fail(fault)
        return True

    def _fold(self, stop: int) -> None:
        if self.history is None:
            for event in self.log.events[self.folded : stop]:
                self.state.add(event)
            self.folded = stop
            return
        # The history goes by time: it takes every event of the chunk's last moment.
        if stop == len(self.log) and stop > 0:
            self.state = self.history.latest()
        else:
            self.state = self.history.at(self.log[stop - 1].time if stop else -1.0)
        self.folded = self.history.cursor

    @property
    def is_stale(self) -> bool:
        """Whether the drawing shows fewer or other events than are folded."""
        return self._framed != self.folded

    def is_shown(self, cursor: float) -> bool:
        """Whether the drawing shows all that is folded, at this cursor (or has nothing to show)."""
        nothing = self.failure != "" or not self.folded
        return nothing or self._shown == (self.folded, cursor)

    def is_current(self, cursor: float, follow: bool) -> bool:
        """Whether all of the log that belongs before this cursor is folded and shown."""
        if self.failure:
            return True
        return self.folded == self.target(cursor, follow) and self.is_shown(cursor)

    def show(self, cursor: float, hurry: bool = True, again: bool = False) -> bool:
        """Draw the state where it or the cursor changed; `hurry`: without waiting for a rest."""
        if self.failure or not self.folded or (perf_counter() < self._rest_until and not hurry):
            return False
        wanted = (self.folded, cursor)
        if self._shown == wanted and not again:
            return False
        begun = thread_time()
        try:
            if self._frame is None or self.is_stale:
                self._frame, self._framed = self._drawn(), self.folded
            self.drawing.show(self._frame, cursor)
        except Exception as fault:  # as above
            self._fail(fault)
            return False
        self._shown = wanted
        self._rest_until = perf_counter() + REST * (thread_time() - begun)
        return True

    def _drawn(self) -> dict[str, Any]:
        """The state's frame; before the end its figures tell the run's totals and peaks, too."""
        frame = self.state.frame()
        if not (self.state.totals or self.state.peaks) or self.log.closed is None:
            return frame
        if self.folded == len(self.log):
            self._end = frame["figures"]
        return beneath(frame, self.state, self._end) if self._end else frame

    def _fail(self, fault: Exception) -> None:
        self.failure = f"{self.view.name} cannot show this run ({type(fault).__name__}: {fault})"
        logging.getLogger(__name__).exception("view %s failed", self.view.name)
