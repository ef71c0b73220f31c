"""Interleaved lanes: each request's life in every run, one under another on one axis.

In come the logs of runs that are over; out goes one log whose lanes are a request in a run
(`r3 A`, `r3 B`), and the view that shows it: a request's lanes stand together, in its hue.
"""

from collections.abc import Iterator, Sequence
from heapq import merge
from typing import Any

import numpy as np
from msgspec.structs import replace

from engine.core.errors import BadInput
from engine.core.events import AnyEvent, Branch, Closed, Opened, Span, Token
from engine.core.log import Log
from engine.core.measure import served
from widgets.canvas.drawing import CanvasDrawing
from widgets.canvas.owner_marks import owner_mark
from widgets.view import View
from widgets.views.request_lanes.detail import reduce
from widgets.views.request_lanes.fold import CHUNKS, RequestLanes

QUESTION = "How did each request fare in each run?"
MOST = 400_000  # events of lanes, of all runs together
HEAD, ROW, FEWEST, TALLEST = 150, 18, 300, 1000  # pixels: of the view without its lanes, of a lane


def can_interleave(logs: Sequence[Log]) -> bool:
    """Whether all runs are over, not too long, and at least two served a request of one name."""
    if any(log.closed is None for log in logs) or sum(map(len, logs)) > MOST:
        return False
    names = [set(served(log)) for log in logs]
    return any(a & b for i, a in enumerate(names) for b in names[:i])


def interleaved(logs: Sequence[Log], letters: str) -> tuple[Log, View]:
    """One log of all lanes and its view. Raises BadInput where `can_interleave` says no.

    It is told as modelled where any of the runs is, lane by lane where others are not. The
    scheduler's steps, which are each run's own, are left out.
    """
    if not can_interleave(logs):
        raise BadInput("these runs have no request in common whose lanes could stand together")
    lanes = lanes_of(logs, letters)
    clocks = [log.opened.clock if log.opened is not None else "wall" for log in logs]
    clock = "virtual" if "virtual" in clocks else "wall"
    modelled = [clocks[letters.index(lane[-1])] == "virtual" for lane, _ in lanes]
    merged = Log([Opened(0.0, {}, "compare", 0, clock)])
    each = (_renamed(log, letter) for log, letter in zip(logs, letters, strict=False))
    for event in merge(*each, key=lambda event: event.time):
        merged.emit(event)
    merged.emit(Closed(max(log.duration for log in logs), "finished"))
    height = min(TALLEST, max(FEWEST, HEAD + ROW * len(lanes)))
    made = View(
        "request_lanes",
        QUESTION,
        lambda: Interleaved(lanes, [] if all(modelled) or not any(modelled) else modelled),
        lambda: CanvasDrawing("request_lanes", reduce, height=height),
        whole=True,
    )
    return merged, made


def lanes_of(logs: Sequence[Log], letters: str) -> list[tuple[str, str]]:
    """(lane, its request): in the order of the first run, what others alone have after it."""
    names = [list(served(log)) for log in logs]
    order = dict.fromkeys(name for each in names for name in each)
    has = [set(each) for each in names]
    return [
        (f"{name} {letters[run]}", name)
        for name in order
        for run in range(len(logs))
        if name in has[run]
    ]


def _renamed(log: Log, letter: str) -> Iterator[AnyEvent]:
    """The events of lanes, each lane called after its request and run."""
    for event in log:
        if isinstance(event, Token):
            yield replace(event, thread=f"{event.thread} {letter}")
        elif isinstance(event, Branch):
            parent = f"{event.parent} {letter}" if event.parent else ""
            yield replace(event, thread=f"{event.thread} {letter}", parent=parent)
        elif isinstance(event, Span) and event.name in CHUNKS:
            yield replace(event, lane=f"{event.lane} {letter}")


class Interleaved(RequestLanes):
    """Request lanes whose order and hues are told before the first event. `modelled`: which lanes
    are, where some are and some are not."""

    question = QUESTION

    def __init__(self, lanes: Sequence[tuple[str, str]], modelled: Sequence[bool] = ()) -> None:
        super().__init__()
        self.modelled = np.array(modelled, np.uint8)
        for place, (lane, request) in enumerate(lanes):
            self.lanes[lane] = place
            self.looks.append(*owner_mark(request), 0.0)

    def draw(self) -> dict[str, Any]:
        some = {"modelled_lane": self.modelled} if len(self.modelled) else {}
        return {**super().draw(), **some}
