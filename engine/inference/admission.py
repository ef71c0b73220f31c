"""Admission control: picks the waiting request that joins the running batch, allocates its pages,
and rejects requests that can never fit."""

from collections.abc import Collection
from dataclasses import replace

import numpy as np

from engine.core.events import Branch, Mark
from engine.inference.config import InferenceConfig
from engine.inference.next_use import NextUse
from engine.inference.page_allocation import PageAllocator
from engine.inference.policies.batching.side_by_side import SideBySide
from engine.inference.policies.policy import Mix, Need, View
from engine.inference.prefill import Chunks, Prefill
from engine.inference.queue import Queue
from engine.inference.requests.canvas import Canvas
from engine.inference.requests.request import Request
from engine.inference.running import Running, pages_for

NONE = np.zeros(0, np.int32)  # no pages


class AdmissionControl:
    """Admits waiting requests in order while rows, pages and the admission policy allow it."""

    def __init__(
        self,
        config: InferenceConfig,
        running: Running,
        queue: Queue,
        next_use: NextUse,
        allocator: PageAllocator,
        context: int,
    ) -> None:
        self.config, self.context = config, context
        self.running, self.queue, self.next_use, self.allocator = (
            running,
            queue,
            next_use,
            allocator,
        )
        self.cache = running.cache
        queue.fits = self.fits
        self.waiting_forks: dict[str, list[Request]] = {}  # samples that fork after the prompt
        self.reserved = 0  # rows kept free for them

    def limit(self, request: Request) -> int:
        """Tokens at which `request` ends for length."""
        return min(len(request.prompt) + request.sampling.max_tokens, self.context)

    def refusal(self, request: Request) -> str:
        """Why `request` can never run; empty where it can."""
        pages = pages_for(self.limit(request), self.config.page_size)
        if pages > self.config.pages:
            return (
                f"needs {pages} pages for {self.limit(request)} tokens, "
                f"the whole cache has {self.config.pages}"
            )
        if request.sampling.n > self.config.max_running:
            return f"asks for {request.sampling.n} samples, {self.config.max_running} can run"
        return "" if request.canvas is None else self._unfit(request.canvas, len(request.tokens))

    def _unfit(self, canvas: Canvas, tokens: int) -> str:
        """Why a text of so many tokens with masks cannot run here."""
        config = self.config
        if not (config.executor.real or canvas.unmasking.counted):
            return (
                "no described device says how sure it is of a place; take a policy of unmasking "
                "that decides a number of tokens"
            )
        if tokens > config.step_tokens:
            return (
                f"its prompt and block of masks are {tokens} tokens, which a step computes at "
                f"once; give it more than {config.step_tokens}"
            )
        if config.speculation.drafts:
            return "a block of masks is not drafted; serve it without speculation"
        if isinstance(config.batching, SideBySide):
            return "a block of masks has no phases to put side by side; choose another batching"
        return ""

    def siblings(self, request: Request, view: View) -> list[Request]:
        """The other samples of `request`. Rows were kept free for them, or there may be none; then
        they wait as requests of their own."""
        self.unreserve(request)
        found = self.waiting_forks.pop(request.id, [])
        room = self.config.max_running - self.running.rows.count
        for child in found[:room]:
            self.starts(child)
        for child in found[room:]:
            self.queue.push(child, view.step, lambda: view)
            self.next_use.waits(child)
        return found[:room]

    def samples(
        self, prefill: Prefill, decodes: int, after_B: np.ndarray, view: View
    ) -> tuple[list[int], list[int]]:
        """Rows whose prompt is complete after the step, and forks that share its first logits; the
        sequences that these come from. Chunks come behind `decodes` sequences."""
        rows, rows_S, from_S = self.running.rows, [], []
        for b, row in enumerate(prefill.chunks.rows, decodes):
            request = self.running.requests[row]
            if after_B[b] < rows.known[row] or request.canvas is not None:
                continue
            prefill.done(request)
            rows_S.append(row)
            from_S.append(b)
            for child in self.siblings(request, view):
                rows_S.append(self.running.fork(request, child, int(after_B[b])))
                from_S.append(b)
        return rows_S, from_S

    def forget(self, request: Request) -> list[Request]:
        """Samples that will never fork from `request`, or `request` itself among a parent's."""
        waiting = self.waiting_forks.get(request.parent, [])
        if request in waiting:
            waiting.remove(request)
        return self.waiting_forks.pop(request.id, [])

    def unreserve(self, request: Request) -> None:
        """Rows kept for the samples of `request` are free again."""
        if request.keeps:
            self.reserved -= request.keeps
            request.keeps = 0

    def in_the_way(
        self, head: Request, view: View, taken: int, away: Collection[Request]
    ) -> list[Request] | None:
        """Running requests that `head` outranks and that make room for it if they leave, the last
        in the order first; None where it has room.

        Where callers take turns it has enough to come in now, beside the `taken` pages that rows
        take in this step, or nobody is in its way; a higher priority takes what there is, step by
        step. `away`: who is not to be touched.
        """
        cache, rows = self.cache, self.running.rows
        enough, turns = False, self.config.ordering.takes_turns
        free, count = cache.available - (taken if turns else 0), rows.count
        need, hits = self._need(head, self.limit(head))
        if self._room(head, need, replace(view, pages_free=free), count):
            return None
        references_P = cache.pool.references
        able = [one for one in self.running.requests if one not in away]
        found: list[Request] = []
        while able and not enough:
            worst = self.queue.last(able, view)
            if worst.urgent or not self.config.ordering.outranks(head, worst, view):
                break
            if not found:
                references_P = references_P.copy()
                references_P[hits] += 1  # what it joins is no room that it gains
            able.remove(worst)
            found.append(worst)
            if worst.source is not None:  # the order goes by who is left
                worst.source.running -= 1
            pages = rows.table(worst.row)
            references_P[pages] -= 1
            free += int(np.count_nonzero(references_P[pages] == 0))
            count -= 1
            enough = self._room(head, need, replace(view, pages_free=free), count)
        for one in found:
            if one.source is not None:
                one.source.running += 1
        return found if enough or not turns else []

    def fits(self, request: Request, view: View) -> bool:
        """Whether there is room for `request` now."""
        if self.running.rows.count + self.reserved >= self.config.max_running:
            return False  # before its prompt is looked for in the tree
        need, _ = self._need(request, self.limit(request))
        now = replace(view, pages_free=self.cache.available)
        return self._room(request, need, now, self.running.rows.count)

    def _room(self, head: Request, need: Need, view: View, count: int) -> bool:
        """Whether `head` may come to `count` running ones, of the pages that `view` says."""
        if count + self.reserved + 1 + self._forks(head) > self.config.max_running:
            return False
        if need.now > view.pages_free:
            return False
        last = not count or not self.config.ordering.takes_turns
        return last or self.config.admission.admits(head, need, view)

    def fill(
        self, mix: Mix, chunks: Chunks, view: View, prefill: Prefill, lets_in: bool = True
    ) -> None:
        """The step's prompt tokens: for those who have begun, then for who is let in; in shares
        where callers take turns."""

        def admit() -> None:
            if lets_in and mix.admit and len(self.queue):
                self.admit(mix, chunks, view, prefill)

        if self.config.ordering.takes_turns:
            prefill.share(chunks, admit)
        else:
            prefill.go_on(chunks)
            admit()

    def admit(self, mix: Mix, chunks: Chunks, view: View, prefill: Prefill) -> None:
        """Let requests in until something is short."""
        rows, entered = self.running.rows, 0
        while entered < mix.admit and chunks.left > 0:
            request = self.queue.head(view)
            if request is None:
                return
            rows_needed = rows.count + self.reserved + 1 + self._forks(request)
            if rows_needed > self.config.max_running:
                return
            limit = self.limit(request)
            need, hits = self._need(request, limit)
            view.pages_free, view.prefilling = self.cache.available, len(prefill)
            alone = not rows.count
            if need.now > view.pages_free:
                return
            if not alone and not self.config.admission.admits(request, need, view):
                return
            if chunks.whole and chunks.rows and len(request.tokens) > chunks.left:
                return
            self._enter(request, hits, limit)
            prefill.enter(request, chunks)
            entered += 1

    def _forks(self, request: Request) -> int:
        """Samples that begin with it, whose rows must be free."""
        if self.config.ordering.takes_turns:
            return 0
        return len(self.waiting_forks.get(request.id, ()))

    def _need(self, request: Request, end: int) -> tuple[Need, list[int]]:
        """Pages it takes from those available, at its `end` tokens too, and the pages of the tree
        it joins."""
        size = self.config.page_size
        hits: list[int] = []
        self._recall(request)
        if request.sent_pages is not None:
            sent = len(request.sent_pages)
            now, peak = pages_for(len(request.tokens), size), pages_for(end, size)
            return Need(max(0, now - sent), max(0, peak - sent)), hits
        if self.running.sharing and request.joins:
            # The last token is computed in any case: its logits are wanted.
            limit = (len(request.tokens) - 1) // size
            if request.host_pages is not None:
                limit = min(limit, request.computed // size)
            hits = self.cache.tree.match(request.tokens, request.salt, limit)
            if self.cache.states is not None and request.host_pages is None:
                request.matched = len(hits) * size
                hits = hits[: self.cache.states.reach(hits)]
        references = self.cache.pool.references
        held = int(np.count_nonzero(references[hits])) if hits else 0
        now = pages_for(len(request.tokens), size) - held
        return Need(now, pages_for(end, size) - held), hits

    def _enter(self, request: Request, hits: list[int], limit: int) -> None:
        cache, size, known = self.cache, self.config.page_size, len(request.tokens)
        self.queue.remove(request)
        if request.source is not None:
            request.source.entered = cache.step
        self.starts(request)
        if request.host_pages is not None:
            pages = self._return(request, hits)
        elif request.sent_pages is not None:
            pages, request.sent_pages = request.sent_pages, None
        else:
            pages = cache.hit(request.id, hits) if hits else NONE
            if self.running.sharing and request.canvas is None and not cache.quiet:
                text = f"request {request.id} hit {len(hits) * size} of {known} tokens"
                cache.emit(Mark(cache.clock.now(), "cache", "lookup", text))
        start, request.reused = len(pages) * size, len(hits) * size
        count = pages_for(known, size) - len(pages)
        if cache.plain and len(pages) == len(hits):
            self.running.enter_plain(request, limit, pages, count)
        else:
            fresh = cache.take(request.id, count, start)
            self.running.enter(request, limit, np.concatenate([pages, fresh]), len(hits))
            self.allocator.states.enter(request, hits[-1] if hits else -1)
        request.keeps = self._forks(request)
        self.reserved += request.keeps
        self.next_use.goes(request)

    def _recall(self, request: Request) -> None:
        """What the host still has of its beginning need not be computed."""
        if request.host_pages is None and request.sent_pages is None and request.joins:
            pages = self.allocator.host.recall(request.tokens, request.salt)
            if pages is not None:
                request.host_pages, request.computed = pages, len(pages) * self.config.page_size

    def _return(self, request: Request, hits: list[int]) -> np.ndarray:
        """Its contents come back from the host, but for what still lies in the tree."""
        assert request.host_pages is not None
        pages = self.allocator.host.bring(request.id, request.host_pages, hits)
        request.host_pages = None
        return pages

    def starts(self, request: Request) -> None:
        """`request` runs from now on."""
        request.state, request.started = "running", True
        now = self.cache.clock.now()
        self.cache.emit(Branch(now, request.id, request.parent, "running"))
