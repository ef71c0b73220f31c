"""State pages: recurrent states of running sequences, and those kept where prefixes end.

A state has a fixed size, however long its sequence. A running sequence holds one page; forks share
theirs until one of them goes on (copy on write: it reads the shared page and writes its own). At
the end of a page of the prefix tree a state may be kept: only there can another sequence join the
prefix. Those kept longest without use go first. Events of them have a `kind` of their own.
"""

from collections.abc import Callable, Iterable

import numpy as np

from engine.cache.pages import Pages
from engine.core.clock import Clock
from engine.core.events import AnyEvent, Page, PageState

NONE = -1
KIND = "state"


class StatePages:
    """Pages for `running` sequences and as many kept states; `host` pages of a host tier.

    A page for a running sequence is always there: each holds one at most.
    """

    def __init__(
        self, running: int, host: int, clock: Clock, emit: Callable[[AnyEvent], None] | None
    ) -> None:
        """`emit`: None where nobody hears."""
        self.most = running  # states kept at once
        self.pool, self.host = Pages(2 * running), Pages(host)
        self.clock, self.emit = clock, emit
        self.kept: dict[int, int] = {}  # page of the tree -> state page, least recently used first
        self.step = 0
        self._used: dict[int, int] = {}  # page of the tree -> step in which it was kept or joined

    def take(self, owner: str, start: int = 0) -> int:
        """A page for `owner`, which holds none."""
        page = int(self.pool.take(1)[0])
        self._tell(page, owner, "take", start)
        return page

    def share(self, owner: str, page: int) -> int:
        """`owner` joins a page of another."""
        self._join(page)
        self._tell(page, owner, "share")
        return page

    def own(self, owner: str, page: int, start: int) -> int:
        """The page `owner` may write once it has read `page`: its own, or a new one."""
        if page < 0:
            return self.take(owner, start)
        if self.pool.references[page] == 1:
            return page
        target = int(self.pool.take(1)[0])
        self._tell(target, owner, "copy", start, page)
        self.drop(owner, page)
        return target

    def drop(self, owner: str, page: int) -> None:
        """`owner` leaves its page, if it has one."""
        if page >= 0:
            self._tell(page, owner, "drop")
            self._leave(page)

    def reach(self, pages: list[int]) -> int:
        """How many of these pages in a row of the tree end where a state was kept."""
        return next((n for n in range(len(pages), 0, -1) if pages[n - 1] in self.kept), 0)

    def hit(self, owner: str, tree_page: int) -> int:
        """`owner` joins the state kept at the end of a page of the tree."""
        page = self.kept[tree_page] = self.kept.pop(tree_page)
        self._used[tree_page] = self.step
        self._join(page)
        self._tell(page, owner, "hit")
        return page

    def keep(self, tree_page: int, page: int = NONE, start: int = 0) -> int:
        """Keep a state at the end of a page of the tree: `page`, or a new one to be written now.

        Returns the page; NONE where one is kept there or those of this step leave no room.
        """
        if tree_page in self.kept or not self._room():
            return NONE
        if page < 0:
            page = int(self.pool.take(1)[0])
        else:
            self._join(page)
        self.kept[tree_page], self._used[tree_page] = page, self.step
        self._tell(page, "", "index", start, tree_page)
        return page

    def forget(self, tree_pages: Iterable[int]) -> None:
        """Pages have left the tree, and the states kept at their ends with them."""
        for tree_page in tree_pages:
            page = self.kept.pop(tree_page, NONE)
            self._used.pop(tree_page, None)
            if page >= 0:
                self._leave(page)

    def swap_out(self, owner: str, page: int) -> int:
        """`owner`'s state leaves for a host page, which is returned; there must be one."""
        target = int(self.host.take(1)[0])
        self._tell(page, owner, "swap_out", 0, target)
        self._leave(page)
        return target

    def swap_in(self, owner: str, host_page: int) -> int:
        """`owner`'s state returns; the contents have to be copied."""
        page = int(self.pool.take(1)[0])
        self._tell(page, owner, "swap_in", 0, host_page)
        self.drop_host(host_page)
        return page

    def drop_host(self, host_page: int) -> None:
        """A host page is given up."""
        given = np.array([host_page], np.int32)
        self.host.leave(given)
        self.host.give_back(given)

    def levels(self) -> tuple[tuple[str, int], ...]:
        """How many pages running sequences hold, and how many states are kept for prefixes."""
        used = self.pool.total - self.pool.free
        return ("states_used", used), ("states_kept", len(self.kept))

    def _room(self) -> bool:
        """Whether one more can be kept: for it the one that was not used for longest may go."""
        if len(self.kept) < self.most:
            return True
        oldest = next(iter(self.kept))
        if self._used[oldest] == self.step:
            return False
        self.forget([oldest])
        return True

    def _join(self, page: int) -> None:
        self.pool.hold(np.array([page], np.int32))

    def _leave(self, page: int) -> None:
        left = self.pool.leave(np.array([page], np.int32))
        if len(left):
            self._tell(page, "", "free")
            self.pool.give_back(left)

    def _tell(
        self, page: int, owner: str, state: PageState, start: int = 0, parent: int = NONE
    ) -> None:
        if self.emit is None:
            return
        now = self.clock.now()
        self.emit(Page(now, page, owner, state, start, 0, parent, kind=KIND))
