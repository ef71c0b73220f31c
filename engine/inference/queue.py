"""Waiting queue: requests in the order of the policy; one out of patience goes first.

Where sources take turns, each has a line of its own, and the firsts of all lines are compared. A
line is patient while it moves, or all of it would go first at once. Where its source has a row,
patience gives it a second and no more, and only while there is room: it keeps nobody waiting who
fits.
"""

import heapq
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from engine.inference.policies.policy import Ordering, View
from engine.inference.requests.request import Request, Source


class Queue:
    """Waiting requests. `head` is the next to enter; it never changes until something does.

    `fits`: whether there is room for one now; admission control sets it.
    """

    def __init__(self, ordering: Ordering, patience: int) -> None:
        self.ordering, self.patience = ordering, patience
        self.moving = ordering.moving
        self.fits: Callable[[Request, View], bool] = lambda _request, _view: True
        self._waiting: dict[Request, int] = {}  # -> stamp, rising
        self._heap: list[tuple[tuple[float, ...], int, int, Request]] = []
        self._lines: dict[Source, list[tuple[int, int, Request]]] = {}
        self._since: list[tuple[int, int, Request]] = []  # who has waited longest first
        self._stamp = 0

    def push(self, request: Request, step: int, view: Callable[[], View]) -> None:
        """`request` begins to wait in `step`; `view` is asked where the order may look at it.

        One that got no token since it last waited has waited all along: priorities that change
        faster than a prompt is computed would preempt it for ever.
        """
        if not request.started or len(request.tokens) != request.queued_with:
            request.queued_at, request.queued_with = step, len(request.tokens)
        self._stamp += 1
        self._waiting[request] = self._stamp
        if request.source is not None and self.ordering.takes_turns:
            line = self._lines.setdefault(request.source, [])
            heapq.heappush(line, (request.number, self._stamp, request))
            request.urgent = False  # until it has room again
            return
        heapq.heappush(self._since, (request.queued_at, self._stamp, request))
        if not self.moving:
            key = () if self.ordering.by_arrival else self.ordering.key(request, view())
            heapq.heappush(self._heap, (key, request.number, self._stamp, request))

    def remove(self, request: Request) -> None:
        """`request` waits no more."""
        self._waiting.pop(request, None)
        if not self._waiting:
            self._heap.clear()
            self._lines.clear()
            self._since.clear()

    def head(self, view: View) -> Request | None:
        """The next to enter."""
        if not self._waiting:
            return None
        if self._lines:
            self._lines = {one: line for one, line in self._lines.items() if self._trim(line)}
        longest = self._out_of_patience(view)
        if longest is not None:
            longest.urgent = True
            return longest
        if self.moving:
            return min(self._waiting, key=lambda r: self.standing(r, view))
        firsts = [self._heap[0][3]] if self._trim(self._heap) else []
        firsts += [line[0][-1] for line in self._lines.values()]
        return firsts[0] if len(firsts) == 1 else min(firsts, key=lambda r: self.standing(r, view))

    def _out_of_patience(self, view: View) -> Request | None:
        """Who has waited longest, if that was too long."""
        late = view.step - self.patience
        found = self._since[:1] if self._trim(self._since) and self._since[0][0] <= late else []
        for source, line in self._lines.items():
            number, _, first = line[0]
            since, has = max(first.queued_at, source.entered), source.running
            first.urgent = since <= late and (not has or (has == 1 and self.fits(first, view)))
            if first.urgent:
                found.append((since, number, first))
        return min(found, key=lambda waits: waits[:2])[2] if found else None

    def _trim(self, heap: list[Any]) -> bool:
        """Drop from its top who waits no more; whether somebody is left."""
        while heap and self._waiting.get(heap[0][-1]) != heap[0][-2]:
            heapq.heappop(heap)
        return bool(heap)

    def standing(self, request: Request, view: View) -> tuple[float, ...]:
        """Lowest goes first: requests out of patience, then by the ordering, then by arrival."""
        if request.urgent:
            return (0.0, float(request.number))
        return (1.0, *self.ordering.key(request, view), float(request.number))

    def last(self, requests: Sequence[Request], view: View) -> Request:
        """Who of these, waiting or not, would go last."""
        return max(requests, key=lambda request: self.standing(request, view))

    def __len__(self) -> int:
        return len(self._waiting)

    def __iter__(self) -> Iterator[Request]:
        return iter(self._waiting)

    def __contains__(self, request: Request) -> bool:
        return request in self._waiting
