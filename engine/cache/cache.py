"""Paged KV cache: who holds which page (block), what the prefix tree remembers, what is evicted.

Owners are named by the caller, who keeps each owner's table of pages. Every change is emitted as a
`Page` event. A page is free, cached (in the prefix tree, held by nobody) or held. Whoever holds a
page of the tree also holds the pages above it, so every cached page can be reached by evicting
leaves. Tensors are not known here: copies are returned and done by an executor.
"""

from collections.abc import Callable

import numpy as np

from engine.cache.eviction import FAR, Ages, Eviction
from engine.cache.idle import Idle
from engine.cache.pages import Pages
from engine.cache.prefix import PrefixTree
from engine.cache.states import StatePages
from engine.core.clock import Clock
from engine.core.events import AnyEvent, Mark, Page, PageState
from engine.core.memory import demand_zeros
from engine.kernels import idle_pages, page_tree, paged_turnover
from engine.kernels.compiled import settled

Emit = Callable[[AnyEvent], None]


class Cache:
    """`pages` pages of `page_size` tokens, shared by prefix under `eviction`, and a host tier."""

    def __init__(
        self, pages: int, page_size: int, eviction: Eviction, clock: Clock, emit: Emit,
        host_pages: int = 0, quiet: bool = False, states: StatePages | None = None,
    ) -> None:  # fmt: skip
        """`clock`: whose time its events carry. `quiet`: it tells nothing of pages that are taken,
        joined, left, indexed and freed. `states`: of a model whose layers keep recurrent ones."""
        self.quiet, self.states = quiet, states
        self.page_size, self.clock, self.emit = page_size, clock, emit
        self.pool, self.host = Pages(pages), Pages(host_pages)
        self.tree = PrefixTree(pages, page_size)
        self.ages = Ages.of(pages)
        self.idle = Idle(self.pool, eviction, self.ages, self.tree)
        self.cached = 0  # pages in the tree that nobody holds
        self._kept = demand_zeros(pages, np.int32)  # to write into
        self.step = 0
        self._index = settled(paged_turnover.index)
        self._plan_of: dict[int, int] = {}  # page -> group of the plan that will use it
        self._planned: dict[int, set[int]] = {}  # group -> its pages
        self._next_use: dict[int, int] = {}  # group -> when the plan needs it next

    @property
    def available(self) -> int:
        """Pages that can be taken: free ones and cached ones."""
        return self.pool.free + self.cached

    @property
    def plain(self) -> bool:
        """Whether columns are all there is of pages: nothing told, planned or kept beside."""
        return self.quiet and self.states is None and not self._plan_of and self.pool.plain

    @property
    def held(self) -> int:
        """Pages that somebody holds."""
        return self.pool.total - self.pool.free - self.cached

    def take(self, owner: str, count: int, start: int = 0) -> np.ndarray:
        """`count` pages for `owner`, its tokens from position `start` on; evicts what it must."""
        taken = self.take_many(count)
        now = 0.0 if self.quiet else self.clock.now()
        for offset, page in enumerate(() if self.quiet else taken.tolist()):
            self.emit(Page(now, page, owner, "take", start + offset * self.page_size))
        return taken

    def take_many(self, count: int) -> np.ndarray:
        """`count` pages, whose owners the caller emits."""
        if self.plain:
            taken, left = self.idle.claim(count)
            self.cached -= left
            return taken
        if count > self.pool.free:
            self._evict(count)
        return self.pool.take(count)

    def taken(
        self, owners: list[str], rows: list[int], pages: np.ndarray, starts: list[int]
    ) -> None:
        """Say that `owners[rows[i]]` took `pages[i]` for its tokens from `starts[i]` on."""
        emit, now = self.emit, self.clock.now()
        for row, page, start in zip(rows, pages.tolist(), starts, strict=True):
            emit(Page(now, page, owners[row], "take", start))

    def give_back(self, owners: list[str], pages: np.ndarray, starts: list[int]) -> None:
        """`owners[i]` leaves `pages[i]`, which it alone held and which are in no tree."""
        now = self.clock.now()
        for owner, page, start in zip(owners, pages.tolist(), starts, strict=True):
            self.emit(Page(now, page, owner, "drop", start, 0, -1, "refused drafts"))
            self.emit(Page(now, page, "", "free"))
        self.pool.references[pages] = 0
        self.pool.give_back(pages)

    def hit(self, owner: str, pages: list[int], start: int = 0) -> np.ndarray:
        """`owner` joins pages found in the tree, the first of which holds position `start`."""
        joined = np.array(pages, np.int32)
        self._join(owner, joined, "hit", start)
        self.ages.uses[joined] += 1
        return joined

    def share(self, owner: str, pages: np.ndarray, start: int = 0) -> None:
        """`owner` joins pages of others, which stand in a row in its view from `start` on."""
        self._join(owner, pages, "share", start)

    def copy(self, owner: str, page: int, start: int) -> int:
        """A private page for `owner` instead of a shared one; the executor copies the contents."""
        target = int(self.take_many(1)[0])
        self.emit(Page(self.clock.now(), target, owner, "copy", start, parent=page))
        self.drop(owner, np.array([page], np.int32), start)
        return target

    def drop(self, owner: str, pages: np.ndarray, start: int = 0) -> None:
        """`owner` leaves distinct pages that stand in a row from position `start` on."""
        emit, now, size = self.emit, self.clock.now(), self.page_size
        for offset, page in enumerate(() if self.quiet else pages.tolist()):
            emit(Page(now, page, owner, "drop", start + offset * size))
        self._leave(pages)

    def index(
        self, owner: str, table: np.ndarray, tokens: np.ndarray, parent: int, first: int,
        stop: int, group: int = -1, shared: int = FAR,
    ) -> tuple[int, int]:  # fmt: skip
        """Pages `first` to `stop` of `owner`'s table, full of its `tokens` (int32), become a chain
        under `parent`. `group` of the plan will use those of its `shared` first tokens again
        (`expect`).

        Returns how far that came, and the page of the tree that has what the next one holds; -1:
        others hold that one too, or all is done.
        """
        reached, twin = self._index(self.idle.table, table, tokens, parent, first, stop, self.step)
        if group >= 0:
            pages = table[first : min(reached, shared // self.page_size)].tolist()
            self._plan_of |= dict.fromkeys(pages, group)
            self._planned.setdefault(group, set()).update(pages)
        if not self.quiet:
            now, size, above = self.clock.now(), self.page_size, max(parent, -1)
            for index, page in enumerate(table[first:reached].tolist(), first):
                self.emit(Page(now, page, owner, "index", index * size, size, above))
                above = page
        return reached, twin

    def index_each(
        self, owners: list[str], rows: np.ndarray, index_R: np.ndarray, tables: np.ndarray,
        tokens: np.ndarray,
    ) -> np.ndarray:  # fmt: skip
        """`index` for page `index_R[r]`, at least 1, of each of several rows' tables.

        Returns where it was done, and not where the tree has a page with those contents already.
        """
        done_R = np.zeros(len(rows), np.bool_)
        page_tree.insert_each(self.tree.nodes, tables, tokens, rows, index_R, done_R)
        pages_R = tables[rows, index_R]
        self.ages.born[pages_R] = self.step
        if not self.quiet:
            emit, now, size = self.emit, self.clock.now(), self.page_size
            above, at = tables[rows, index_R - 1], index_R * size
            columns = (each[done_R].tolist() for each in (rows, pages_R, above, at))
            for row, page, parent, start in zip(*columns, strict=True):
                emit(Page(now, page, owners[row], "index", start, size, parent))
        return done_R

    def expect(self, group: int, next_use: int = FAR) -> None:
        """The plan needs the pages of `group` next at `next_use`, or never again."""
        if self._next_use.get(group, FAR) == next_use:
            return
        self._next_use[group] = next_use
        if not (planned := self._planned.get(group)):
            return
        pages = np.array(list(planned), np.int32)
        self.ages.soon[pages] = FAR - next_use
        self.idle.weigh(pages)
        idle = np.array([page for page in planned if page in self.idle], np.int32)
        self.idle.discard(idle)
        self._rest(idle[::-1])

    def swap_out(
        self, owner: str, pages: np.ndarray, tokens: int, targets: np.ndarray | None = None
    ) -> np.ndarray:
        """`owner`'s `tokens` tokens leave `pages` for `targets` of the host, which are returned."""
        targets = self.host.take(len(pages)) if targets is None else targets
        size, now = self.page_size, self.clock.now()
        for offset, (page, target) in enumerate(zip(pages.tolist(), targets.tolist(), strict=True)):
            filled = min(size, tokens - offset * size)
            self.emit(Page(now, page, owner, "swap_out", offset * size, filled, target))
        self._leave(pages)
        return targets

    def swap_in(self, owner: str, host_pages: np.ndarray, cached: list[int]) -> np.ndarray:
        """`owner`'s contents return; the first `cached` of them still lie in the tree.

        Returns its pages; contents of `host_pages[len(cached):]` have to be copied.
        """
        joined = np.array(cached, np.int32)
        self._hold(joined)
        fresh = self.take_many(len(host_pages) - len(cached))
        pages, now = np.concatenate([joined, fresh]), self.clock.now()
        crossing = zip(pages.tolist(), host_pages.tolist(), strict=True)
        for offset, (page, source) in enumerate(crossing):
            why, start = "still cached" if offset < len(cached) else "", offset * self.page_size
            self.emit(Page(now, page, owner, "swap_in", start, parent=source, why=why))
        self._give_host_back(host_pages)
        return pages

    def drop_host(self, owner: str, host_pages: np.ndarray) -> None:
        """`owner` gives host pages up: a drop of page -1 whose `parent` is the host page."""
        now = self.clock.now()
        for offset, source in enumerate(host_pages.tolist()):
            start = offset * self.page_size
            self.emit(Page(now, -1, owner, "drop", start, parent=source, why="host page"))
        self._give_host_back(host_pages)

    def reset(self) -> int:
        """Forget every cached page that nobody holds; returns how many."""
        forgotten = self.cached
        while self.cached:
            page = self.idle.pop()
            parent = self.tree.remove(page)
            self._forget(page, "reset")
            self._rest(np.array([parent], np.int32))
        return forgotten

    def _join(self, owner: str, pages: np.ndarray, state: PageState, start: int) -> None:
        emit, now, size = self.emit, self.clock.now(), self.page_size
        self._hold(pages)
        for offset, page in enumerate(() if self.quiet else pages.tolist()):
            emit(Page(now, page, owner, state, start + offset * size))

    def _hold(self, pages: np.ndarray) -> None:
        woken = pages[self.pool.references[pages] == 0]
        self.idle.discard(woken)
        self.cached -= len(woken)
        self.pool.hold(pages)

    def _leave(self, pages: np.ndarray) -> None:
        pool, before = self.pool, self.pool.free
        pages = pages.astype(np.int32, copy=False)
        if self.quiet and self.idle.age_P is not None and not self._plan_of:
            self.cached += self.idle.retire(pages, self.step)
            return
        given = self.tree.nodes, pool.references, self.ages.last_used, pool.stack, pages
        count, pool.free = idle_pages.leave(*given, self.step, before, self._kept)
        for page in () if self.quiet else pool.stack[before : pool.free].tolist():
            self.emit(Page(self.clock.now(), page, "", "free"))
        if count:
            kept = self._kept[:count]
            self.cached += count
            if self._plan_of:
                groups = (self._plan_of.get(page, -1) for page in kept.tolist())
                self.ages.soon[kept] = [FAR - self._next_use.get(group, FAR) for group in groups]
            self.idle.weigh(kept)
            self._rest(kept)  # children before their parents

    def _rest(self, pages: np.ndarray) -> None:
        """Cached pages that nobody holds, the last one first, are up for eviction once nothing
        hangs under them.

        What is not worth keeping is freed at once, and then the page above it may be next.
        """
        for page in self.idle.rest(pages, self.pool.references):
            self._forget(page, self.idle.policy.reason(page, self.ages, self.step))

    def _evict(self, wanted: int) -> None:
        """Evict until `wanted` pages are free."""
        reason, now = self.idle.policy.reason, self.clock.now()
        gone, evicted = self.idle.evict(wanted - self.pool.free, self.pool.references)
        for page, asked in () if self.quiet else zip(gone.tolist(), evicted.tolist(), strict=True):
            why = reason(page, self.ages, self.step)
            if asked:
                self.emit(Mark(now, "cache", "evict", f"evicted page {page}: {why}"))
            self.emit(Page(now, page, "", "free", why=why))
        if not evicted.all():
            self._left_tree(gone[~evicted])
            gone = gone[evicted]
        self._left_tree(gone)

    def _forget(self, page: int, why: str) -> None:
        """A cached page that has left the tree is free."""
        self.emit(Page(self.clock.now(), page, "", "free", why=why))
        self._left_tree(np.array([page], np.int32))

    def _left_tree(self, pages: np.ndarray) -> None:
        self.cached -= len(pages)
        if self.states is not None:
            self.states.forget(pages.tolist())
        self.ages.uses[pages], self.ages.soon[pages] = 0, 0
        for page in pages.tolist() if self._plan_of else ():
            group = self._plan_of.pop(page, -1)
            if group >= 0:
                self._planned[group].discard(page)
        self.pool.give_back(pages)

    def _give_host_back(self, host_pages: np.ndarray) -> None:
        self.host.leave(host_pages)
        self.host.give_back(host_pages)
