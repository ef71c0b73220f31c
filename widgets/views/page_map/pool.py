"""The page pool: who holds which page, the part of the cache view's state that `Page` events move.

Pages and host pages are numbers; owners are numbered in order of appearance. What the browser gets
of a page lies in plain arrays, fast to change one by one and, as numpy columns, to read at once.
"""

from array import array
from typing import Any, Self

import numpy as np

from engine.core.events import Page

FREE, USED, CACHED = 0, 1, 2  # state of a device page
ACTS = ("", "taken", "found in the cache", "shared by a fork", "copied on write", "left", "freed",
        "evicted", "swapped out", "swapped in")  # fmt: skip
ACT = {"take": 1, "hit": 2, "share": 3, "copy": 4, "drop": 5, "swap_out": 8, "swap_in": 9}
NOBODY = -1
COLUMNS = {
    "state": "B",
    "shown": "i",  # owner whose hue the page has: the first that is still there
    "refs": "i",
    "touched": "i",  # step it was last used in
    "wrote": "i",  # step it was last written in, from 1
    "act": "B",
    "acted": "i",
    "why": "i",
}


class Pool:
    """Holders and history of every page; its columns are those of COLUMNS."""

    state: array
    shown: array
    refs: array
    touched: array
    wrote: array
    act: array
    acted: array
    why: array

    def __init__(self, pages: int = 0, page_size: int = 1, host_pages: int = 0) -> None:
        self.page_size = max(1, page_size)
        self.owners: dict[str, int] = {}
        self.whys: dict[str, int] = {"": 0}
        self.holders: dict[int, tuple[int, ...]] = {}
        self.rows: dict[int, dict[int, int]] = {}  # owner -> page -> start; host page h as -1 - h
        self.indexed: set[int] = set()
        self.host: dict[int, int] = {}  # host page -> owner
        self.host_pages = host_pages
        self.used, self.cached, self.extra = 0, 0, 0  # extra: references beyond each page's first
        for name, kind in COLUMNS.items():
            setattr(self, name, array(kind))
        self._sorted: dict[int, tuple[np.ndarray, np.ndarray]] = {}  # rows as arrays, by start
        self._tail: dict[int, tuple[int, int]] = {}  # owner -> page asked for last, its start
        self.grow(pages)

    @property
    def pages(self) -> int:
        return len(self.state)

    def grow(self, pages: int) -> None:
        """Make room for page numbers below `pages` (a log whose header does not say how many)."""
        more = pages - self.pages
        if more > 0:
            for name, kind in COLUMNS.items():
                fill = array(kind, [NOBODY if name == "shown" else 0]) * more
                setattr(self, name, getattr(self, name) + fill)

    def column(self, name: str) -> np.ndarray:
        """One value a page, as a view that changes with the pool."""
        return np.asarray(getattr(self, name))

    def owner(self, name: str) -> int:
        return self.owners.setdefault(name, len(self.owners))

    def add(self, event: Page, step: int) -> None:
        """Take one page event in scheduler step `step` (from 1)."""
        page, state = event.page, event.state
        if page < 0:  # no device page: only what lies on the host is given up
            self._leave_host(event.parent, self.owner(event.owner))
            return
        if page >= self.pages:
            self.grow(max(page + 1, 2 * self.pages))
        who = self.owner(event.owner) if event.owner else NOBODY
        if state in ("take", "hit", "share", "copy", "swap_in"):
            self._join(page, who, event.start, step)
            if state in ("copy", "swap_in") and not event.why:
                self.wrote[page] = step
            if state == "swap_in":
                self._leave_host(event.parent, who)
        elif state in ("drop", "swap_out"):
            self._leave(page, who, step)
            if state == "swap_out" and event.parent >= 0:
                self.host[event.parent] = who
                self.host_pages = max(self.host_pages, event.parent + 1)
                self._row(who)[-1 - event.parent] = event.start
        elif state == "free":
            evicted = page in self.indexed
            self._free(page, step)
            self._note(page, 7 if evicted else 6, step, event.why)
        elif state == "index":
            self.indexed.add(page)
            self._settle(page)
        if state in ACT:
            self._note(page, ACT[state], step, event.why)

    def _note(self, page: int, act: int, step: int, why: str) -> None:
        self.act[page], self.acted[page] = act, step
        self.why[page] = self.whys.setdefault(why, len(self.whys)) if why else 0

    def _row(self, who: int) -> dict[int, int]:
        self._sorted.pop(who, None)
        self._tail.pop(who, None)
        return self.rows.setdefault(who, {})

    def _join(self, page: int, who: int, start: int, step: int) -> None:
        held = self.holders.get(page, ())
        if who not in held:
            self.holders[page] = (*held, who)
            self.extra += bool(held)
        self._row(who)[page] = start
        if not held:
            self.shown[page] = who
        self.touched[page] = step
        self._settle(page)

    def _leave(self, page: int, who: int, step: int) -> None:
        held = self.holders.get(page, ())
        if who in held:
            left = tuple(h for h in held if h != who)
            self.extra -= bool(left)
            if left:
                self.holders[page] = left
                if self.shown[page] == who:
                    self.shown[page] = left[0]
            else:
                del self.holders[page]
                self.touched[page] = step
        self._drop_row(who, page)
        self._settle(page)

    def _leave_host(self, host_page: int, who: int) -> None:
        if self.host.pop(host_page, None) is not None:
            self._drop_row(who, -1 - host_page)

    def _drop_row(self, who: int, page: int) -> None:
        row = self._row(who)
        row.pop(page, None)
        if not row:
            del self.rows[who]

    def _free(self, page: int, step: int) -> None:
        for who in self.holders.get(page, ()):
            self._leave(page, who, step)
        self.indexed.discard(page)
        self._settle(page)

    def _settle(self, page: int) -> None:
        """Put the page's columns and the counts in line with its holders."""
        held = len(self.holders.get(page, ()))
        now = USED if held else CACHED if page in self.indexed else FREE
        before = self.state[page]
        self.used += (now == USED) - (before == USED)
        self.cached += (now == CACHED) - (before == CACHED)
        self.state[page], self.refs[page] = now, held
        if now == FREE:
            self.shown[page] = NOBODY

    def forget_host(self, who: int) -> None:
        """A request that ended while swapped out leaves its host pages."""
        for key in [p for p in self.rows.get(who, {}) if p < 0]:
            self._leave_host(-1 - key, who)

    def page_at(self, who: int, position: int) -> int | None:
        """The device page that holds `position` of an owner, None where it has none."""
        page, start = self._tail.get(who, (NOBODY, 0))
        if page >= 0 and start <= position < start + self.page_size:
            return page
        pages, starts = self.row(who)
        place = int(np.searchsorted(starts, position, "right")) - 1
        if place < 0 or position >= starts[place] + self.page_size or pages[place] < 0:
            return None
        self._tail[who] = int(pages[place]), int(starts[place])
        return self._tail[who][0]

    def row(self, who: int) -> tuple[np.ndarray, np.ndarray]:
        """An owner's pages in logical order, and the position each starts at."""
        if who not in self._sorted:
            row = self.rows.get(who, {})
            pages = np.fromiter(row.keys(), np.int32, len(row))
            starts = np.fromiter(row.values(), np.int32, len(row))
            order = np.argsort(starts, kind="stable")
            self._sorted[who] = pages[order], starts[order]
        return self._sorted[who]

    def table(self) -> dict[str, np.ndarray]:
        """All rows in one: owner of each row, its offset, and page and start of each cell."""
        whos = list(self.rows)
        found = [self.row(who) for who in whos]
        offsets = np.zeros(len(whos) + 1, np.int32)
        np.cumsum([len(pages) for pages, _ in found], out=offsets[1:])
        empty = [np.zeros(0, np.int32)]
        return {
            "row_owner": np.array(whos, np.int32),
            "row_offset": offsets,
            "row_page": np.concatenate([pages for pages, _ in found] or empty),
            "row_start": np.concatenate([starts for _, starts in found] or empty),
        }

    def host_owner(self) -> np.ndarray:
        """The owner of each host page, -1 where it is empty."""
        owner = np.full(self.host_pages, NOBODY, np.int32)
        for page, who in self.host.items():
            owner[page] = who
        return owner

    def copy(self) -> Self:
        other: Any = object.__new__(type(self))
        other.__dict__.update(self.__dict__)
        for name in COLUMNS:
            setattr(other, name, getattr(self, name)[:])
        for name in ("owners", "whys", "holders", "indexed", "host", "_sorted", "_tail"):
            setattr(other, name, getattr(self, name).copy())
        other.rows = {who: dict(row) for who, row in self.rows.items()}
        return other
