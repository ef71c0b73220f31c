"""Fold of requests' lives into their latencies, each with the moment it became known."""

from array import array
from typing import Any, Self

import numpy as np

from engine.core.events import AnyEvent, Blob, Branch, Closed, Opened, Token
from engine.core.measure import BUCKETS
from widgets.fold import Fold, nothing

KINDS = ("time_to_first_token", "time_per_output_token", "end_to_end")
EMPTY = "No latencies yet. They appear with the first token of a request."
OVER = ("finished", "aborted", "rejected", "pruned", "joined")


class LatencyFold(Fold):
    """Latencies as `engine.core.measure` defines them, in seconds.

    Time per output token is known when a request is over. Frame: for each of `KINDS`
    (values_N, known_N, owners), plus `waiting` (requests without a first token), `clock`, `stop`,
    `empty` (what to say where there are none) and
    `buckets` {kind: [2, K]} where a run knows buckets alone (`engine.core.measure.BUCKETS`).
    """

    def __init__(self) -> None:
        self.values = {kind: array("d") for kind in KINDS}
        self.known = {kind: array("d") for kind in KINDS}
        self.owners: dict[str, list[str]] = {kind: [] for kind in KINDS}
        self.queued: dict[str, float] = {}
        self.spoken: dict[str, tuple[float, float, int]] = {}  # first, latest, count
        self.buckets: dict[str, str] = {}  # kind -> ref
        self.clock = "wall"
        self.opened = self.closed = False
        self.stop = 0.0

    def add(self, event: AnyEvent) -> None:
        self.stop = event.time
        kind = type(event)
        if kind is Token:
            if event.accepted:  # type: ignore[union-attr]
                self._token(event.thread, event.time)  # type: ignore[union-attr]
        elif kind is Branch:
            self._change(event)  # type: ignore[arg-type]
        elif kind is Blob:
            if event.name.startswith(BUCKETS):  # type: ignore[union-attr]
                self.buckets[event.name.removeprefix(BUCKETS)] = event.ref  # type: ignore[union-attr]
        elif kind is Opened:
            self.clock, self.opened = event.clock, True  # type: ignore[union-attr]
        elif kind is Closed:
            self.closed = True

    def _token(self, thread: str, time: float) -> None:
        spoken = self.spoken.get(thread)
        if spoken is None:
            self.spoken[thread] = (time, time, 1)
            if thread in self.queued:
                self._know("time_to_first_token", thread, time - self.queued[thread], time)
        else:
            self.spoken[thread] = (spoken[0], time, spoken[2] + 1)

    def _change(self, event: Branch) -> None:
        thread = event.thread
        if event.state == "queued":
            self.queued.setdefault(thread, event.time)
        elif event.state in OVER:
            first, last, count = self.spoken.get(thread, (0.0, 0.0, 0))
            if count > 1:
                gap = (last - first) / (count - 1)
                self._know("time_per_output_token", thread, gap, event.time)
            if event.state == "finished" and thread in self.queued:
                self._know("end_to_end", thread, event.time - self.queued[thread], event.time)

    def _know(self, kind: str, thread: str, value: float, time: float) -> None:
        self.values[kind].append(value)
        self.known[kind].append(time)
        self.owners[kind].append(thread)

    def frame(self) -> dict[str, Any]:
        frame: dict[str, Any] = {
            kind: (np.array(self.values[kind]), np.array(self.known[kind]), self.owners[kind][:])
            for kind in KINDS
        }
        waiting = sum(thread not in self.spoken for thread in self.queued)
        found = {
            kind: array
            for kind, ref in self.buckets.items()
            if kind in KINDS and _is_histogram(array := self.blobs.get(ref))
        }
        more = {"waiting": waiting, "clock": self.clock, "stop": self.stop, "buckets": found}
        told = any(bool(counts[-1] > 0) for _, counts in found.values())
        known = told or any(self.values.values())
        return {**frame, **more, "empty": "" if known else nothing(EMPTY, self.opened, self.closed)}

    def copy(self) -> Self:
        other = type(self)()
        other.values = {kind: column[:] for kind, column in self.values.items()}
        other.known = {kind: column[:] for kind, column in self.known.items()}
        other.owners = {kind: column[:] for kind, column in self.owners.items()}
        other.queued, other.spoken = dict(self.queued), dict(self.spoken)
        other.clock, other.stop = self.clock, self.stop
        other.opened, other.closed = self.opened, self.closed
        other.buckets, other.blobs = dict(self.buckets), self.blobs
        return other


def _is_histogram(array: np.ndarray | None) -> bool:
    """Whether it is [2, K] of rising bounds and counts that never fall."""
    if array is None or array.ndim != 2 or array.shape[0] != 2 or array.shape[1] == 0:
        return False
    return bool((np.diff(array[0]) > 0).all() and (np.diff(array[1]) >= 0).all())
