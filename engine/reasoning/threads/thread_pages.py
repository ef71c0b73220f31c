"""ThreadPages: which pages blocks have and which threads hold them, with copy on write.

A thread holds every page of every block it sees, each once, whatever it sees it through. Whoever
writes takes pages; whoever comes to see them shares them; a page goes when nobody holds it.
"""

from collections.abc import Iterable

import numpy as np

from engine.cache.cache import Cache
from engine.cache.layouts import Block, Sight, Tables
from engine.core.events import Page
from engine.reasoning.threads.thread import Thread


class ThreadPages:
    """Pages of all blocks. `copies` fills with (source page, target page) to be done."""

    def __init__(self, cache: Cache, copied_on_read: bool = False) -> None:
        """`copied_on_read`: a mistake, a page is copied for each who comes to see it."""
        self.cache, self.tables = cache, Tables()
        self.own: dict[str, list[int]] | None = {} if copied_on_read else None  # by thread
        self.copies: list[tuple[int, int]] = []
        self.copied = 0  # pages copied so far
        self._viewers: dict[Block, int] = {}  # threads that hold a block's pages

    def need(self, block: Block, count: int) -> int:
        """Pages that `count` more tokens of `block` take."""
        size = self.cache.page_size
        return -(-(block.length + count) // size) - len(block.pages) + int(block.borrowed)

    def append(self, thread: Thread, count: int) -> None:
        """Room for `count` more tokens of the thread's own block, which count as there."""
        block, size = thread.block, self.cache.page_size
        if block.row < 0:
            self.tables.open(block)
        if block.borrowed:
            self._copy_tail(thread, block)
        need = self.need(block, count)
        if need:
            begin = thread.sees.get(block.name, 0) + len(block.pages) * size
            pages = self.cache.take(thread.name, need, begin).tolist()
            block.pages += pages
            for page in pages:
                thread.pages[page] = thread.pages.get(page, 0) + 1
            self._hold(thread, block, len(block.pages))
            self.tables.update(block)
        block.length += count

    def fork(self, source: Block, child: Block) -> None:
        """`child` has the pages and tokens of `source`, a page that is not full on loan."""
        child.pages, child.length = source.pages.copy(), source.length
        child.borrowed = source.length % self.cache.page_size != 0 or source.borrowed
        self.tables.open(child)

    def see(self, thread: Thread, view: Iterable[Sight]) -> None:
        """`thread` shares the pages of what it sees now, and leaves what it sees no longer."""
        gone = dict(thread.held)
        for sight in view:
            block = sight.block
            held = gone.pop(block, 0)
            if held < len(block.pages):
                self._share(thread, block, held, sight.begin)
        for block in gone:
            self._leave(thread, block)

    def release(self, thread: Thread) -> None:
        """`thread` is over: it holds nothing any more."""
        for block in list(thread.held):
            self._leave(thread, block)
        copied = self.own.pop(thread.name, []) if self.own else []
        if copied:
            self.cache.drop(thread.name, np.array(copied, np.int32))

    def holders(self) -> int:
        """(thread, block) pairs that hold pages."""
        return sum(self._viewers.values())

    def _copy_tail(self, thread: Thread, block: Block) -> None:
        """The last page of a fork becomes its own before it is written to."""
        last, size = block.pages[-1], self.cache.page_size
        start = thread.sees.get(block.name, 0) + (len(block.pages) - 1) * size
        block.borrowed = False
        holders = thread.pages.get(last, 0)
        if holders == 1 and self.cache.pool.references[last] == 1:
            return  # the parent has left: nobody else reads or writes the page
        if holders > 1:  # seen through the parent's block too: that hold stays
            target = int(self.cache.take_many(1)[0])
            now = self.cache.clock.now()
            self.cache.emit(Page(now, target, thread.name, "copy", start, parent=last))
            thread.pages[last] -= 1
        else:
            target = self.cache.copy(thread.name, last, start)
            del thread.pages[last]
        thread.pages[target] = 1
        block.pages[-1] = target
        self.tables.update(block)
        self.copies.append((last, target))
        self.copied += 1

    def _hold(self, thread: Thread, block: Block, count: int) -> None:
        if block not in thread.held:
            self._viewers[block] = self._viewers.get(block, 0) + 1
        thread.held[block] = count

    def _share(self, thread: Thread, block: Block, held: int, begin: int) -> None:
        fresh = []
        for page in block.pages[held:]:
            thread.pages[page] = thread.pages.get(page, 0) + 1
            if thread.pages[page] == 1:
                fresh.append(page)
        if fresh:
            start = begin + held * self.cache.page_size
            self.cache.share(thread.name, np.array(fresh, np.int32), start)
            if self.own is not None and self.cache.available >= len(fresh):
                self._copy_seen(thread, fresh, start)
        self._hold(thread, block, len(block.pages))

    def _copy_seen(self, thread: Thread, pages: list[int], start: int) -> None:
        """A copy of each page that `thread` has come to see, which nobody reads."""
        assert self.own is not None
        now, size = self.cache.clock.now(), self.cache.page_size
        targets = self.cache.take_many(len(pages)).tolist()
        for number, (page, target) in enumerate(zip(pages, targets, strict=True)):
            at = start + number * size
            self.cache.emit(Page(now, target, thread.name, "copy", at, parent=page))
            self.copies.append((page, target))
        self.own.setdefault(thread.name, []).extend(targets)
        self.copied += len(pages)

    def _leave(self, thread: Thread, block: Block) -> None:
        count = thread.held.pop(block)
        gone = []
        for page in block.pages[:count]:
            thread.pages[page] -= 1
            if not thread.pages[page]:
                del thread.pages[page]
                gone.append(page)
        if gone:
            self.cache.drop(thread.name, np.array(gone, np.int32))
        self._viewers[block] -= 1
        if not self._viewers[block]:
            del self._viewers[block]
            self.tables.close(block)
