"""Page (block) allocation: gives running requests pages for their next tokens, copies shared ones
on write, and takes those of preempted requests back."""

import numpy as np

from engine.core.events import Branch, Mark, Move
from engine.inference.config import InferenceConfig
from engine.inference.next_use import NextUse
from engine.inference.policies.policy import View
from engine.inference.queue import Queue
from engine.inference.requests.request import Request
from engine.inference.requests.step import NO_PAIRS, NOTHING_MOVES, Movements
from engine.inference.running import Running, pages_for
from engine.inference.state_allocation import StateAllocator
from engine.kernels import paged_rows
from engine.kernels.compiled import settled
from engine.kernels.drafts import chains


class PageAllocator:
    """Takes pages for rows that need them; preempts. Page movements gather for the next step."""

    def __init__(
        self,
        running: Running,
        queue: Queue,
        next_use: NextUse,
        config: InferenceConfig,
    ) -> None:
        self.running, self.queue, self.next_use = running, queue, next_use
        self.cache, self.rows = running.cache, running.rows
        self.preemption, self.tells_moves = config.preemption, config.batching.tells_moves
        self.host = config.preemption.swap(self.cache)
        self.states = StateAllocator(running)
        # Rows write drafts too, and may be more than one token behind.
        self.ahead = config.speculation.drafts > 0
        self.full = np.zeros(0, np.int64)  # rows that need a page, of those last asked about
        self._short_N = np.empty(2 * config.max_running, np.int64)  # to write into
        self._give, self._back = settled(paged_rows.give), settled(chains.give_back)
        self._short = settled(chains.short)
        self.copies: list[tuple[int, int]] = []
        self.moves: list[list[int]] = []  # slots that kept drafts lie at, and go to

    def missing(self, decode: np.ndarray, whole: bool = False) -> int:
        """Pages that are missing before the rows `decode` can each write one more token.

        `whole`: these are all rows, in order.
        """
        rows = self.rows
        if self.ahead:
            wanted = self._behind(decode)
        elif whole:
            count = rows.count
            self.full = (rows.filled[:count] == rows.cached[:count]).nonzero()[0]
            wanted = len(self.full)
        else:
            self.full = decode[rows.filled[decode] == rows.cached[decode]]
            wanted = len(self.full)
        if self.running.forked:
            wanted += self._copies_needed(decode)
        return wanted - self.cache.available

    def _behind(self, decode: np.ndarray) -> int:
        """Pages that the rows `decode` are short of for all that they know."""
        rows = self.rows
        given = decode, rows.known, rows.pages, rows.page_size
        count = self._short(*given, self._short_N)
        if count > len(self._short_N):
            self._short_N = np.empty(2 * count, np.int64)
            self._short(*given, self._short_N)
        self.full = self._short_N[:count]
        return count

    def grow(self, decode: np.ndarray) -> None:
        """Give the rows `decode`, just asked about, a place for what they write."""
        if self.running.forked:
            self._copy_tails(decode)
        full, rows = self.full, self.rows
        if self.host.grows and not self.ahead and len(full):
            self.host.grows_after(rows.tables[full, rows.pages[full] - 1])
        self.take_ahead(full)

    def take_ahead(self, full: np.ndarray) -> None:
        """A page more, which is there, for each row of `full`, where a row may stand repeatedly."""
        if not len(full):
            return
        rows, cache = self.rows, self.cache
        pages = cache.take_many(len(full))
        starts = np.empty(len(full), np.int32)
        self._give(rows.tables, rows.pages, rows.filled, full, pages, rows.page_size, starts)
        if not cache.quiet:
            cache.taken(self.running.names, full.tolist(), pages, starts.tolist())

    def give_back_ahead(self, decode: np.ndarray, over: np.ndarray, count: int) -> None:
        """The last `over` pages of each row, `count` in all, which were for refused drafts."""
        rows, (which, pages, starts) = self.rows, np.empty((3, count), np.int32)
        self._back(
            rows.tables, decode, rows.pages, rows.filled, over, rows.page_size, which, pages, starts
        )
        names = self.running.names
        self.cache.give_back([names[row] for row in which.tolist()], pages, starts.tolist())

    def preempt(self, request: Request, view: View, why: str) -> None:
        """`request` gives its pages up, to the host or for good, and waits again."""
        rows, cache, row = self.rows, self.cache, request.row
        cached = int(rows.cached[row])
        self.running.index_full(row, cached)
        table = rows.table(row).copy()
        filled = pages_for(cached, rows.page_size)
        view.host_free = self.host.room
        swaps = filled > 0 and self.preemption.swaps(request, filled, view)
        swaps = swaps and filled <= view.host_free and self.states.can_swap()
        self.states.leave(request, to_host=swaps)
        if swaps:
            cache.drop(request.id, table[filled:], filled * rows.page_size)
            tokens_T = rows.tokens[row, :cached]
            request.host_pages = self.host.send(request.id, table[:filled], tokens_T, request.salt)
            request.computed, request.state = cached, "swapped"
        else:
            cache.drop(request.id, table)
            request.computed, request.state = 0, "preempted"
        self.running.leave(request)
        cache.emit(Branch(cache.clock.now(), request.id, request.parent, request.state, why))
        text = f"request {request.id} {request.state}: {why}"
        cache.emit(Mark(cache.clock.now(), "scheduler", "preempt", text))
        self.queue.push(request, view.step, lambda: view)
        self.next_use.waits(request)

    def give_up(self, request: Request) -> None:
        """`request` is over: its row and pages are free."""
        plain = self.cache.plain and self.cache.idle.age_P is not None and request.group < 0
        if plain and not self.tells_moves and self.running.leave_plain(request):
            return
        row, cached, table = request.row, self.rows.cached[request.row], self.rows.table
        self.running.index_full(row, int(cached))
        full = table(row)[: cached // self.rows.page_size]
        self.host.ended(full, self.rows.tokens[row, :cached], request.salt)
        self.cache.drop(request.id, table(row).copy())
        self.states.leave(request)
        self._tell_move(request.row, self.running.leave(request))

    def _tell_move(self, row: int, last: int) -> None:
        """The last row went into the place of `row`; say so where the policy is about that."""
        if self.tells_moves and row != last:
            rows, now = self.rows, self.cache.clock.now()
            moved = float(rows.tokens.itemsize * (rows.known[row] + rows.pages[row]))
            self.cache.emit(Move(now, f"row {last}", f"row {row}", moved, now, "compact"))

    def movements(self) -> Movements:
        """Pairs of pages that moved since the last call."""
        states, host = self.states, self.host
        some = host.pending or host.overlaps or self.copies or self.moves
        if not (some or states.out or states.back):
            return NOTHING_MOVES
        slots = np.array(self.moves, np.int32) if self.moves else NO_PAIRS
        copies = np.array(self.copies, np.int32) if self.copies else NO_PAIRS
        self.copies, self.moves = [], []
        out, back = states.movements()
        swaps = host.movements()
        return Movements(slots, copies=copies, states_out=out, states_in=back, **swaps)

    def _shared_tails(self, decode: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Rows of `decode` whose next token would be written into a shared page, and the pages."""
        rows = self.rows
        inside = decode[rows.filled[decode] != rows.cached[decode]]
        tails = rows.tables[inside, rows.cached[inside] // rows.page_size]
        shared = self.cache.pool.references[tails] > 1
        return inside[shared], tails[shared]

    def _copies_needed(self, decode: np.ndarray) -> int:
        _, tails = self._shared_tails(decode)
        pages, writers = np.unique(tails, return_counts=True)
        # The last of a page's holders to write may keep it.
        return int((writers - (self.cache.pool.references[pages] == writers)).sum())

    def _copy_tails(self, decode: np.ndarray) -> None:
        rows, size = self.rows, self.rows.page_size
        for row, tail in zip(*map(np.ndarray.tolist, self._shared_tails(decode)), strict=True):
            if self.cache.pool.references[tail] > 1:
                index = int(rows.cached[row]) // size
                page = self.cache.copy(self.running.names[row], tail, index * size)
                rows.tables[row, index] = page
                self.copies.append((tail, page))
