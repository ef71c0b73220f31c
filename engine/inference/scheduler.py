"""Scheduler: decides from waiting and running requests what the next step computes.

A step decodes the rows the batching policy names, computes chunks of prompts within what is left of
the token budget, and admits who is next while there is room. Rows short of pages make others yield.
"""

from collections.abc import Callable

import numpy as np

from engine.cache.cache import Cache
from engine.cache.eviction import counted
from engine.core.events import Branch, Mark
from engine.inference.accounts import Accounts
from engine.inference.admission import AdmissionControl
from engine.inference.config import InferenceConfig
from engine.inference.next_use import NextUse
from engine.inference.page_allocation import PageAllocator
from engine.inference.policies.policy import Mix, Phase, View
from engine.inference.prefill import Prefill
from engine.inference.queue import Queue
from engine.inference.quiet_step import QuietSteps
from engine.inference.requests.request import Request
from engine.inference.requests.step import Step
from engine.inference.requests.view_sequences import ViewBatch
from engine.inference.running import Running
from engine.inference.speculator import Speculator


class Scheduler:
    """Decides steps. What it decides about is in `queue`, `running` and `cache`."""

    def __init__(
        self, config: InferenceConfig, cache: Cache, context: int, over: Callable[[Request], None]
    ) -> None:
        """`context`: tokens a sequence may have; `over` hears of every request that has ended."""
        self.config, self.cache = config, cache
        self.queue = Queue(config.ordering, config.patience)
        self.accounts = Accounts(self._present) if config.ordering.accounts else None
        how = config.prefix_sharing, self.accounts, config.batching.forgets_tokens
        self.running = Running(cache, config.max_running, *how)
        self.rows = self.running.rows
        self.next_use = NextUse(cache)
        parts = self.running, self.queue, self.next_use
        self.allocator = PageAllocator(*parts, config)
        self.prefill = Prefill(self.running, self.allocator.host)
        self.admission = AdmissionControl(config, *parts, self.allocator, context)
        self.speculator = Speculator(config, self.running, self.allocator)
        self.over = over
        self.quiet = QuietSteps(config, self.prefill, self.admission)
        self.every_row = np.arange(config.max_running)
        self.ones = np.ones(config.max_running, np.int32)
        self.padded = 0  # rows that are over and kept as padding
        self.phase: Phase = ""  # what the next step is for, where phases are side by side …
        self.away: set[Request] = set()  # … and who is in the other one's step: not to be touched
        self.preempted = self.viewing = 0  # in this step; its tokens that threads over views take

    def view(self, number: int, now: float) -> View:
        """The moment, as policies see it."""
        config, cache = self.config, self.cache
        return View(
            step=number,
            now=now,
            rows=self.rows,
            running=self.running.requests,
            find=self._decoding,
            prefilling=len(self.prefill),
            waiting=len(self.queue),
            budget=max(1, config.step_tokens - self.viewing),
            max_running=config.max_running,
            page_size=config.page_size,
            pages=config.pages,
            pages_free=cache.available,
            host_free=cache.host.free,
            served=self.accounts.served if self.accounts is not None else {},
            phase=self.phase,
        )

    def begin(self, number: int) -> None:
        """A step begins. Threads that step along make room and take pages between this and it."""
        self.cache.step, self.preempted = number, 0

    def _present(self) -> set[str]:
        """Users who wait or run."""
        return {one.user for one in (*self.running.requests, *self.queue)}

    def make_room(self, pages: int) -> None:
        """Let running requests yield until `pages` can be taken or nobody is left to yield."""
        while self.cache.available < pages and self.rows.count:
            view = self.view(self.cache.step, self.cache.clock.now())
            self._yield(view, pages - self.cache.available)

    def schedule(self, number: int, now: float, threads: ViewBatch | None = None) -> Step | None:
        """The step that has begun, with `threads` in it; None where there is nothing to do."""
        self.viewing = threads.tokens if threads else 0
        step = self._schedule(number, now)
        if threads is None:
            return step
        if step is None:
            self.prefill.begin(Mix())
            step = self._step(Mix(), self.every_row[:0], self.view(number, now))
        step.join(threads)
        return step

    def _schedule(self, number: int, now: float) -> Step | None:
        if self.padded == self.rows.count:
            self.release_padding()  # the rest of the batch was aborted or yielded
            if not len(self.queue):
                return None
        if number % self.rows.page_size == 0:
            self.running.index_generated()
        view = self.view(number, now)
        if self.quiet.allowed and not (self.padded or self.viewing):
            step = self.quiet.schedule(view)
            if step is not None:
                return step
        if self.config.ordering.displaces and len(self.queue):
            self._displace(view)
            view = self.view(number, now)
        tried = 0
        mixes = self.config.batching.mixes(view)
        while tried < len(mixes):
            mix = mixes[tried]
            decode = self._decode_rows(mix, view)
            whole = decode is view.decoding and len(decode) == self.rows.count
            missing = self.allocator.missing(decode, whole) if len(decode) else 0
            if missing > 0:
                self._yield(view, missing)
                view = self.view(number, now)
                mixes, tried = self.config.batching.mixes(view), 0
                continue
            step = self._compose(mix, decode, view)
            if step is not None:
                return step
            tried += 1
        return self._step(Mix(), self.every_row[:0], view) if self.prefill.wait(mixes) else None

    def _decoding(self) -> np.ndarray:
        count = self.rows.count
        if not (len(self.prefill) or self.padded or self.away):
            return self.every_row[:count]
        can = ~self.rows.padding[:count]
        can[[request.row for request in (*self.prefill.pending, *self.away)]] = False
        return np.flatnonzero(can)

    def _decode_rows(self, mix: Mix, view: View) -> np.ndarray:
        decode = view.decoding if mix.decode is None else mix.decode
        if len(decode) > view.budget and not mix.padded:
            # Rows take turns when a step cannot hold them all.
            first = view.step * view.budget % len(decode)
            decode = np.roll(decode, -first)[: view.budget]
        return decode

    def _compose(self, mix: Mix, decode: np.ndarray, view: View) -> Step | None:
        if len(decode):
            self.allocator.grow(decode)
        chunks = self.prefill.begin(mix)
        self.admission.fill(mix, chunks, view, self.prefill, not self.preempted)
        if not len(decode) and not chunks.rows:
            return None
        return self.speculator.extend(self._step(mix, decode, view), view.budget)

    def _step(self, mix: Mix, decode: np.ndarray, view: View) -> Step:
        rows, chunks, count = self.rows, self.prefill.chunks, len(decode)
        rows_B, queries_B, sample_rows, sample_from = decode, self.ones[:count], decode, None
        if chunks.rows:
            rows_B = np.concatenate([decode, np.array(chunks.rows, np.int64)])
            queries_B = np.concatenate([queries_B, np.array(chunks.queries, np.int32)])
        starts_B = rows.cached[rows_B]  # a copy: the column moves on
        states = self.allocator.states.plan(rows_B, starts_B, queries_B, count)
        if chunks.rows:
            rows_S, from_S = self.admission.samples(self.prefill, count, starts_B + queries_B, view)
            sample_rows = np.concatenate([decode, np.array(rows_S, np.int64)])
            sample_from = np.concatenate([self.every_row[:count], np.array(from_S, np.int64)])
        return Step(
            number=view.step,
            rows=rows,
            whole=rows_B is view.decoding and count == rows.count,
            requests=self.running.requests,
            rows_B=rows_B,
            starts_B=starts_B,
            queries_B=queries_B,
            sample_rows_S=sample_rows,
            sample_from_S=self.every_row[:count] if sample_from is None else sample_from,
            decodes=count,
            prefill_tokens=sum(chunks.queries),
            canvases_C=count + np.array(chunks.canvases) if chunks.canvases else None,
            states=states,
            moves=self.allocator.movements(),
            padding=self._padding(mix, count) if mix.padded else 0,
            sample_attention=bool(self.config.attention_every)
            and view.step % self.config.attention_every == 0,
            profile=bool(self.config.profile_every) and view.step % self.config.profile_every == 0,
        )

    def _padding(self, mix: Mix, decodes: int) -> int:
        queries = self.prefill.chunks.queries
        short = max(queries) * len(queries) - sum(queries) if queries else 0
        return short + (self.padded if decodes else 0)

    def _yield(self, view: View, missing: int) -> None:
        """One running request makes room: one that is over already, or the last in the order."""
        if self.padded:
            self.release_padding()
            return
        self.preempt(self._last(view), view, f"{counted(missing, 'page')} short")

    def _last(self, view: View) -> Request:
        """Who would go last of those that run and can yield."""
        running = self.running.requests
        return self.queue.last([r for r in running if r not in self.away], view)

    def preempt(self, request: Request, view: View, why: str) -> None:
        """`request` yields its pages and waits again."""
        self.preempted += 1
        self.prefill.done(request)
        self.admission.unreserve(request)
        self.allocator.preempt(request, view, why)

    def _displace(self, view: View) -> None:
        """Running requests yield to a waiting one that outranks them while it has no room: as many
        as make enough of it, or none."""
        head = self.queue.head(view)
        if head is None or self.rows.count <= len(self.away):
            return
        # What this step's rows take is not there for who comes.
        taken = max(0, self.cache.available + self.allocator.missing(view.decoding))
        victims = self.admission.in_the_way(head, view, taken, self.away)
        if victims is None:
            return
        if self.padded:
            self.release_padding()
            self._displace(self.view(view.step, view.now))
            return
        for worst in victims:
            self.preempt(worst, view, f"request {head.id} outranks it")
            self.preempted = 0  # the room is for the one that outranks: let it in at once

    def release_padding(self) -> None:
        """Requests that are over leave their static batch."""
        if not self.padded:
            return
        for request in [r for r in self.running.requests if self.rows.padding[r.row]]:
            self.allocator.give_up(request)
        self.padded = 0

    def enqueue(self, request: Request, step: int, view: Callable[[], View]) -> None:
        """`request` waits from now on."""
        if self.accounts is not None:
            self.accounts.comes(request.user)
        self.queue.push(request, step, view)
        self.next_use.waits(request)

    def abort(self, request: Request, why: str) -> None:
        """`request` ends now, whatever it was doing; one that is over stays as it is."""
        if request.over:
            return
        for child in self.admission.forget(request):
            self.abort(child, f"its prompt {request.id} was aborted")
        if request.row >= 0:
            self.prefill.done(request)
            self.admission.unreserve(request)
            self.allocator.give_up(request)
        else:
            self.queue.remove(request)
            self.next_use.goes(request)
            if request.host_pages is not None:
                self.cache.drop_host(request.id, request.host_pages)
                request.host_pages = None
                self.allocator.states.forget(request)
            elif request.sent_pages is not None:
                self.cache.drop(request.id, request.sent_pages)
                request.sent_pages = None
        request.state, request.reason = "aborted", "abort"
        self.cache.emit(Branch(self.cache.clock.now(), request.id, request.parent, "aborted", why))
        self.over(request)

    def reject(self, request: Request, why: str) -> None:
        """`request` can never run."""
        request.state, request.reason = "rejected", why
        emit, now = self.cache.emit, self.cache.clock.now()
        emit(Branch(now, request.id, request.parent, "rejected", why))
        emit(Mark(now, "scheduler", "reject", f"request {request.id} rejected: {why}"))
        self.over(request)

    def fork(self, parent: Request, child: Request, step: int, view: Callable[[], View]) -> None:
        """`child` goes on from where `parent` is: in the batch if it can, else it waits."""
        rows, row = self.rows, parent.row
        room = rows.count + self.admission.reserved < self.config.max_running
        if row >= 0 and room and parent not in self.prefill.pending and parent not in self.away:
            self.admission.starts(child)
            self.running.fork(parent, child, int(rows.cached[row]))
            return
        tokens = parent.tokens if row < 0 else rows.tokens[row, : rows.known[row]]
        child.tokens = tokens.copy()
        self.enqueue(child, step, view)
