"""Swap by block groups: FastSwitch's context switch (arXiv 2411.18424), over the same cache.

Contiguous pages cross in one copy; steps go on while pages are on their way, and wait only where a
page they write is still being read or nobody else can run; and full pages keep their copy on the
host, found by their contents, so that only what is new crosses again: of a request that is
preempted again, and of a conversation's next turn.
"""

import hashlib
from collections import OrderedDict
from typing import Any

import numpy as np

from engine.cache.block_groups import BlockGroups
from engine.cache.cache import Cache
from engine.cache.host_swap import HostSwap
from engine.core.events import Level, Span


def runs(pairs: np.ndarray) -> np.ndarray:
    """Pages of each run of (source, target) pairs that both lie side by side."""
    if not len(pairs):
        return np.zeros(0, np.int64)
    breaks = np.flatnonzero((np.diff(pairs, axis=0) != 1).any(1)) + 1
    return np.diff(breaks, prepend=0, append=len(pairs))


class BlockGroupSwap(HostSwap):
    """Groups of pages, on their way while steps go on, kept on the host."""

    grows = True

    def __init__(self, cache: Cache, room: int, overlaps: bool, reuses: bool, stale: bool) -> None:
        """`room`: pages left behind a new group (0: pages as they come, a copy each). `stale`, a
        mistake: a page counts as kept by how it begins, whatever has been written behind that."""
        super().__init__(cache)
        self.grouped, self.overlaps, self.reuses, self.stale = room > 0, overlaps, reuses, stale
        self.pool = BlockGroups(cache.pool.total, room, cache.clock, self.grouped)
        self.host = BlockGroups(cache.host.total, 0, cache.clock, self.grouped)
        self.pool.references, self.pool.stack = cache.pool.references, cache.pool.stack
        cache.pool = cache.idle.pool = self.pool
        cache.host = self.host
        self._page_of: OrderedDict[bytes, int] = OrderedDict()  # contents -> host page, oldest …
        self._contents: dict[int, bytes] = {}  # … first; and the contents of each
        self._ready = np.zeros(cache.host.total)  # when a host page has been written
        self._out_free = self._in_free = 0.0  # when each direction of the link is free
        self._wait = 0.0  # when the coming step may begin
        self._ways: dict[str, tuple[float, int]] = {}  # who is in `landing` -> begin, pages
        self._told = dict.fromkeys(("copies", "pages_copied", "pages_kept"), 0)

    @property
    def room(self) -> int:
        """Free host pages, and kept ones that no request waits for."""
        return self.host.free + int(np.count_nonzero(self.host.kept & (self.host.references == 0)))

    def send(self, owner: str, pages: np.ndarray, tokens_T: np.ndarray, salt: str) -> np.ndarray:
        targets, fresh = self._targets(tokens_T, salt, len(pages))
        self.cache.swap_out(owner, pages, len(tokens_T), targets)
        self._copy_out(pages[fresh], targets[fresh])
        self._tell(pages_kept=len(pages) - int(np.count_nonzero(fresh)))
        return targets

    def bring(self, owner: str, host_pages: np.ndarray, cached: list[int]) -> np.ndarray:
        awaited, self.pool.awaited = self.pool.awaited, 0.0
        pages = super().bring(owner, host_pages, cached)
        now, pairs = self.cache.clock.now(), self._back[-1]
        written = float(self._ready[pairs[:, 0]].max(initial=0.0))
        begin = max(now, self._in_free, written, self.pool.awaited)
        done = begin + self._seconds(pairs)
        self.pool.awaited = awaited  # the copies wait for these pages, the step does not
        self._in_free = done
        self.pool.until[pairs[:, 1]] = done  # whoever has them next waits for what is on its way
        if self.overlaps and done > now:
            self.landing[owner], self._ways[owner] = done, (begin, len(pairs))
        return pages

    def ended(self, pages: np.ndarray, tokens_T: np.ndarray, salt: str) -> None:
        if not self.reuses or self.room < len(pages):
            return
        targets, fresh = self._targets(tokens_T[: len(pages) * self.cache.page_size], salt, -1)
        self._copy_out(pages[fresh], targets[fresh])
        self.host.leave(targets)

    def recall(self, tokens_T: np.ndarray, salt: str) -> np.ndarray | None:
        found = []
        if self._page_of and self.cache.states is None:
            whole = (len(tokens_T) - 1) // self.cache.page_size
            for contents in self._contents_of(tokens_T[:-1], salt)[:whole]:
                if contents not in self._page_of:
                    break
                found.append(self._page_of[contents])
        known = self.cache.tree.match(tokens_T, salt, len(found)) if found else []
        if len(found) <= len(known):
            return None
        pages = np.array(found, np.int32)
        self.host.hold(pages)
        self._tell(pages_kept=len(pages))
        return pages

    def forget(self) -> None:
        self._forget(len(self._page_of))

    def grows_after(self, pages: np.ndarray) -> None:
        self.pool.after = pages

    def wait_for(self, owner: str) -> None:
        self._wait = max(self._wait, self.landing[owner])
        self.arrived(owner)

    def leaves(self, owner: str) -> None:
        super().leaves(owner)
        self._ways.pop(owner, None)

    def arrived(self, owner: str) -> None:
        done, (begin, count) = self.landing.pop(owner), self._ways.pop(owner)
        now = self.cache.clock.now()
        if done <= now and not self.cache.quiet:
            self.cache.emit(Span(now, owner, "swap in", begin, tag=f"{count} pages"))

    def movements(self) -> dict[str, Any]:
        moves, now = super().movements(), self.cache.clock.now()
        stall = max(self._wait, self.pool.awaited) - now
        self._wait = self.pool.awaited = 0.0
        if self.overlaps:
            moves["stall"] = max(0.0, stall)
        elif moves:
            moves["runs"] = tuple(self._runs(moves[way]) for way in ("swap_out", "swap_in"))
        return moves

    def _targets(
        self, tokens_T: np.ndarray, salt: str, count: int
    ) -> tuple[np.ndarray, np.ndarray]:
        """A host page for each page of those tokens, held once more, and which have to be written;
        `count` -1: full pages alone."""
        contents = self._contents_of(tokens_T, salt) if self.reuses else []
        count = len(contents) if count < 0 else count
        there = [self._page_of.get(each, -1) for each in contents[:count]]
        targets = np.array(there + [-1] * (count - len(there)), np.int32)
        fresh = targets < 0
        self.host.hold(targets[~fresh])
        missing = int(np.count_nonzero(fresh))
        self._forget(missing - self.host.free)
        targets[fresh] = self.host.take(missing)
        for each, page in reversed(list(zip(contents, targets.tolist(), strict=False))):
            self._page_of[each] = page
            self._page_of.move_to_end(each)  # a chain goes from its end: what is left can be found
            self._contents[page] = each
            self.host.kept[page] = True
        return targets, fresh

    def _forget(self, count: int) -> None:
        """Kept pages that no request waits for become free, the oldest first."""
        if count <= 0:
            return
        idle = [page for page in self._page_of.values() if not self.host.references[page]][:count]
        for page in idle:
            del self._page_of[self._contents.pop(page)]
        pages = np.array(idle, np.int32)
        self.host.kept[pages] = False
        self.host.give_back(pages)

    def _contents_of(self, tokens_T: np.ndarray, salt: str) -> list[bytes]:
        """What names the contents of each full page: its tokens and all before them."""
        size, last = self.cache.page_size, hashlib.blake2b(salt.encode(), digest_size=16).digest()
        pages, shown = len(tokens_T) // size, 1 if self.stale else size
        if self.stale:
            pages = -(-len(tokens_T) // size)
        found = []
        for start in range(0, pages * size, size):
            tokens = tokens_T[start : start + shown].tobytes()
            last = hashlib.blake2b(last + tokens, digest_size=16).digest()
            found.append(last)
        return found

    def _copy_out(self, pages: np.ndarray, targets: np.ndarray) -> None:
        """Pages cross to the host, not before they have come if they are on their way here."""
        if not len(pages):
            return
        pairs = np.stack([pages, targets], 1)
        self._out.append(pairs)
        begin = max(self.cache.clock.now(), self._out_free, float(self.pool.until[pages].max()))
        done = begin + self._seconds(pairs)
        self._out_free = done
        self._ready[targets] = done
        self.pool.until[pages] = done

    def _runs(self, pairs: np.ndarray) -> np.ndarray:
        return runs(pairs) if self.grouped else np.ones(len(pairs), np.int64)

    def _seconds(self, pairs: np.ndarray) -> float:
        """How long these take to cross, which is counted."""
        pages_R = self._runs(pairs)
        self._tell(copies=len(pages_R), pages_copied=len(pairs))
        return self.copy_seconds(pages_R) if self.overlaps else 0.0

    def _tell(self, **more: int) -> None:
        for name, count in more.items():
            self._told[name] += count
            if count and not self.cache.quiet:
                now = self.cache.clock.now()
                self.cache.emit(Level(now, "host link", name, float(self._told[name])))
