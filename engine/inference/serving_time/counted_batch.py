"""Continuous batching by counts: when each of many requests is answered, without tokens or events.

In come lengths and arrivals, the limits of an engine and the cost of a step; out come each
request's times. The rules are vLLM's: who runs goes first, with one token or the next chunk of a
prompt; who waits enters while tokens of the step, rows and pages are left; where pages run out, the
last that entered yields, and finds again what of its pages nobody took meanwhile (the longest free
go first, of one request its last). Prefixes of others are not shared. Steps that differ only by a
token more of context are taken together, for the cost in their middle.
"""

import heapq
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from engine.core.errors import BadInput

TOGETHER = 32  # steps at most that are taken together

Prompts = list[tuple[int, int]]  # (tokens of a chunk, tokens cached before it)
Cost = Callable[[int, int, Prompts, int], list[float]]
"""Seconds of a step's parts: answers, tokens that they see in all, chunks, rows of logits."""


class Limits(NamedTuple):
    """What an engine's configuration allows."""

    running: int  # requests in the batch
    tokens: int  # of a step
    pages: int  # of the cache
    page: int = 16  # tokens


@dataclass(slots=True)
class Served:
    """Seconds of each request since the first moment, and what was done in all."""

    scheduled_R: np.ndarray
    first_R: np.ndarray
    last_R: np.ndarray
    parts: list[float]  # seconds of all steps, by part of the cost
    steps: int = 0
    preempted: int = 0
    held: int = 0  # most pages at one time


@dataclass(slots=True)
class _Batch:
    """Where every request stands."""

    limits: Limits
    prompt: list[int]
    answer: list[int]
    free: int
    freed: deque[list[int]] = field(default_factory=deque)  # free pages of one, longest free first
    kept: dict[int, list[int]] = field(default_factory=dict)  # those of who has yielded
    now: float = 0.0
    decoded: int = 0  # steps in which answers grew
    seen: int = 0  # tokens that the answers under way have cached
    base: dict[int, int] = field(default_factory=dict)  # answers under way: cached less `decoded`
    running: dict[int, None] = field(default_factory=dict)  # in order of entering
    chunks: dict[int, list[int]] = field(default_factory=dict)  # computed, to compute
    waiting: deque[int] = field(default_factory=deque)
    known: dict[int, int] = field(default_factory=dict)  # tokens of who has yielded
    ends: list[tuple[int, int]] = field(default_factory=list)  # heap of (`decoded`, request)
    turns: list[int] = field(default_factory=list)  # answers that take a page, by `decoded` % page

    def grows(self, steps: int) -> int:
        """Pages that answers take in the step after `steps` more."""
        return self.turns[(self.decoded + steps) % self.limits.page]

    def answers(self, request: int, cached: int) -> None:
        """`request` has its prompt and a token: it decodes from now on, until it ends."""
        self.base[request] = base = cached - self.decoded
        self.seen += cached
        self.turns[-base % self.limits.page] += 1
        left = self.prompt[request] + self.answer[request] - cached - 1
        heapq.heappush(self.ends, (self.decoded + left, request))

    def take(self, pages: int) -> None:
        """Pages come into use, the longest free first."""
        self.free -= pages
        while pages:
            first = self.freed[0]
            taken = min(first[0], pages)
            first[0] -= taken
            pages -= taken
            if not first[0]:
                self.freed.popleft()

    def found(self, request: int) -> int:
        """Free pages that still hold what `request` had computed."""
        kept = self.kept.get(request)
        known = self.known.get(request, 0)
        return min(kept[0], (known - 1) // self.limits.page) if kept else 0

    def enter(self, request: int, known: int) -> int:
        """`request` runs from now on; returns the tokens of it that are computed."""
        pages = self.found(request)
        if pages:
            self.kept[request][0] -= pages
            self.free -= pages
        self.kept.pop(request, None)
        self.running[request] = None
        self.chunks[request] = [pages * self.limits.page, known]
        return pages * self.limits.page

    def leave(self, request: int) -> int:
        """`request` gives its pages up; returns the tokens that it has."""
        del self.running[request]
        if request in self.chunks:
            cached, known = self.chunks.pop(request)
        else:
            base = self.base.pop(request)
            cached = base + self.decoded
            known = cached + 1
            self.seen -= cached
            self.turns[-base % self.limits.page] -= 1
        pages = -(-cached // self.limits.page)
        self.free += pages
        self.freed.append([pages])
        return known

    def preempt(self) -> int:
        """The last that entered yields and waits before all others."""
        request = next(reversed(self.running))
        self.known[request] = self.leave(request)
        self.kept[request] = self.freed[-1]
        self.waiting.appendleft(request)
        return request


def serve(
    arrival_R: np.ndarray, prompt_R: np.ndarray, answer_R: np.ndarray, limits: Limits, cost: Cost
) -> Served:
    """Answer every request. Arrivals (seconds) in order; lengths in tokens, answers at least 1.

    Raises BadInput where one does not fit the cache, or a step does not hold a token of each.
    """
    _check(prompt_R, answer_R, limits)
    batch = _Batch(limits, prompt_R.tolist(), answer_R.tolist(), limits.pages)
    batch.turns = [0] * limits.page
    batch.freed.append([limits.pages])
    arrival, count = arrival_R.tolist(), len(arrival_R)
    scheduled, first, last = ([float("nan")] * count for _ in range(3))
    told = Served(*(np.empty(0),) * 3, parts=[])
    coming = 0
    while coming < count or batch.running or batch.waiting:
        if not batch.running and not batch.waiting:
            batch.now = max(batch.now, arrival[coming])
        while coming < count and arrival[coming] <= batch.now:
            batch.waiting.append(coming)
            coming += 1
        yielded = _make_room(batch)
        cut = _chunks(batch, admit=not yielded)
        told.preempted += yielded
        for request in cut:
            if scheduled[request] != scheduled[request]:
                scheduled[request] = batch.now
        steps = 1
        if not cut and not batch.base:  # prompts alone, each of which waits for pages of another
            batch.preempt()
            continue
        if not cut:
            next_one = arrival[coming] if coming < count and not batch.waiting else None
            steps = _alike(batch, cost, next_one)
        _advance(batch, cost, cut, steps, told)
        _tell(batch, cut, first, last)
        told.held = max(told.held, limits.pages - batch.free)
    told.scheduled_R, told.first_R, told.last_R = (
        np.array(each) for each in (scheduled, first, last)
    )
    return told


def _check(prompt_R: np.ndarray, answer_R: np.ndarray, limits: Limits) -> None:
    longest = int((prompt_R + answer_R).max(initial=0))
    if -(-longest // limits.page) > limits.pages:
        room = limits.pages * limits.page
        raise BadInput(
            f"a request of {longest:,} tokens: the cache holds {max(0, room):,}; take a larger "
            "device, more ranks or shorter requests"
        )
    if limits.running > limits.tokens:
        raise BadInput(
            f"{limits.running} running requests in steps of {limits.tokens} tokens: a step is to "
            "hold a token of each"
        )


def _make_room(batch: _Batch) -> int:
    """Preempt until every answer can grow by a token; returns how many yielded."""
    yielded = 0
    while batch.grows(0) > batch.free:
        batch.preempt()
        yielded += 1
    return yielded


def _chunks(batch: _Batch, admit: bool) -> dict[int, int]:
    """Tokens of each prompt in this step: of those under way, then of those who enter."""
    limits, cut = batch.limits, dict[int, int]()
    left = limits.tokens - len(batch.base)
    room = batch.free - batch.grows(0)
    for request, (done, known) in list(batch.chunks.items()):
        size = min(known - done, left)
        need = -(-(done + size) // limits.page) - -(-done // limits.page)
        if size <= 0 or need > room:
            break
        cut[request], left, room = size, left - size, room - need
    while admit and batch.waiting and left > 0 and len(batch.running) < limits.running:
        request = batch.waiting[0]
        known = batch.known.get(request, batch.prompt[request])
        hit = batch.found(request)
        size = min(known - hit * limits.page, left)
        need = -(-(hit * limits.page + size) // limits.page)
        if need > room:
            break
        batch.waiting.popleft()
        batch.enter(request, known)
        cut[request], left, room = size, left - size, room - need
    return cut


def _alike(batch: _Batch, cost: Cost, arrival: float | None) -> int:
    """How many steps are alike from here: until an answer ends, pages run out or someone comes."""
    while batch.ends and not _valid(batch, batch.ends[0]):
        heapq.heappop(batch.ends)
    most = min(TOGETHER, batch.ends[0][0] - batch.decoded) if batch.ends else 1
    free, steps = batch.free - batch.grows(0), 1
    while steps < most and batch.grows(steps) <= free:
        free -= batch.grows(steps)
        steps += 1
    if arrival is not None and steps > 1:
        ones = len(batch.base)
        each = sum(cost(ones, batch.seen + ones, [], ones))
        steps = max(1, min(steps, int(-(-(arrival - batch.now) // each))))
    return steps


def _valid(batch: _Batch, end: tuple[int, int]) -> bool:
    """Whether the request of a heap's entry still decodes towards that end."""
    base = batch.base.get(end[1])
    return base is not None and (base + end[0] == batch.prompt[end[1]] + batch.answer[end[1]] - 1)


def _advance(batch: _Batch, cost: Cost, cut: dict[int, int], steps: int, told: Served) -> None:
    """Time, pages and tokens of so many steps."""
    ones = len(batch.base)
    prompts = [(size, batch.chunks[request][0]) for request, size in cut.items()]
    ending = sum(_ends(batch, request, size) for request, size in cut.items())
    seen = batch.seen + ones + ones * (steps - 1) // 2
    parts = cost(ones, seen, prompts, ones + ending)
    before = told.parts or [0.0] * len(parts)
    told.parts = [a + steps * b for a, b in zip(before, parts, strict=True)]
    told.steps += steps
    batch.now += steps * sum(parts)
    for _ in range(steps):
        batch.take(batch.grows(0))
        batch.decoded += 1
    batch.seen += ones * steps
    page = batch.limits.page
    for request, size in cut.items():
        done = batch.chunks[request][0]
        batch.take(-(-(done + size) // page) - -(-done // page))
        batch.chunks[request][0] = done + size


def _ends(batch: _Batch, request: int, size: int) -> bool:
    done, known = batch.chunks[request]
    return done + size >= known


def _tell(batch: _Batch, cut: dict[int, int], first: list[float], last: list[float]) -> None:
    """What came out of a step: first tokens, and who is done."""
    for request in cut:
        done, known = batch.chunks[request]
        if done < known:
            continue
        if first[request] != first[request]:
            first[request] = batch.now
        if known + 1 >= batch.prompt[request] + batch.answer[request]:
            last[request] = batch.now
            batch.leave(request)
        else:
            del batch.chunks[request]
            batch.answers(request, known)
    while batch.ends and batch.ends[0][0] <= batch.decoded:
        end = heapq.heappop(batch.ends)
        if _valid(batch, end):
            last[end[1]] = batch.now
            batch.leave(end[1])
