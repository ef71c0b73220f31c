"""Block groups: a page pool that gives contiguous pages, so that few copies move a sequence.

FastSwitch's dynamic block groups (arXiv 2411.18424): a sequence begins a group with room behind it
and grows into that room; what room it has not used is anybody's once there is no other. A group
here is what came to lie side by side, so nothing is kept of it but the free pages themselves.
"""

import numpy as np

from engine.cache.pages import Pages
from engine.core.clock import Clock

NOWHERE = np.zeros(0, np.int32)


class BlockGroups(Pages):
    """Pages of which those taken together lie together where they can.

    `room`: pages left free behind a new group, for it to grow into; 0: groups are packed.
    `grouped`: False gives pages as they come, and says like the others when they may be written.
    """

    plain = False

    def __init__(self, total: int, room: int, clock: Clock, grouped: bool = True) -> None:
        super().__init__(total)
        self.room, self.clock, self.grouped = room, clock, grouped
        self.until = np.zeros(total)  # when a page has been copied away or here: it may be written
        self.kept = np.zeros(total, np.bool_)  # pages that nobody holds and that are not free
        self.after = NOWHERE  # the next pages are for those who hold these as their last
        self.awaited = 0.0  # when all pages taken of late may be written

    def take(self, count: int) -> np.ndarray:
        """`count` free pages, each now held once: those that may be written first."""
        taken = self._grouped(count) if self.grouped else super().take(count)
        self.awaited = max(self.awaited, float(self.until[taken].max(initial=0.0)))
        return taken

    def _grouped(self, count: int) -> np.ndarray:
        if count > self.free:
            raise ValueError(f"{count} pages asked for, {self.free} free")
        free = np.sort(self.stack[: self.free])
        ready = free[self.until[free] <= self.clock.now()]
        usable = np.zeros(self.total + 1, np.bool_)
        usable[ready if len(ready) >= count else free] = True
        after, self.after = self.after, NOWHERE
        grows = len(after) == count
        taken = self._next_to(usable, after) if grows else self._together(usable, count)
        left = np.zeros(self.total, np.bool_)
        left[free] = True
        left[taken] = False
        self.free -= count
        self.stack[: self.free] = np.flatnonzero(left)[::-1]
        self.references[taken] = 1
        return taken

    def give_back(self, pages: np.ndarray) -> None:
        """Distinct pages become free, but those that are kept or that somebody holds."""
        super().give_back(pages[(self.references[pages] == 0) & ~self.kept[pages]])

    def _next_to(self, usable: np.ndarray, after: np.ndarray) -> np.ndarray:
        """The page behind each of `after`, or where that is taken the first of a new group."""
        taken = np.empty(len(after), np.int32)
        for i, last in enumerate(after.tolist()):
            page = last + 1 if usable[last + 1] else int(self._run(usable, 1)[0])
            usable[page] = False
            taken[i] = page
        return taken

    def _together(self, usable: np.ndarray, count: int) -> np.ndarray:
        """`count` pages in as few groups as there are."""
        groups = [NOWHERE]
        while count:
            run = self._run(usable, count)
            usable[run] = False
            groups.append(run)
            count -= len(run)
        return np.concatenate(groups)

    def _run(self, usable: np.ndarray, count: int) -> np.ndarray:
        """Up to `count` pages side by side: of the longest run, behind the room of whoever lies
        before it; of a packed pool, of the shortest that is long enough."""
        edges = np.diff(usable.astype(np.int8), prepend=np.int8(0), append=np.int8(0))
        starts, stops = np.flatnonzero(edges == 1), np.flatnonzero(edges == -1)
        lengths = stops - starts
        best = int(lengths.argmax())
        if not self.room and lengths[best] >= count:
            best = int(np.where(lengths >= count, lengths, self.total + 1).argmin())
        spare = int(lengths[best]) - count
        start = int(starts[best])
        if start and spare > 0:
            start += min(self.room, spare // 2)
        return np.arange(start, start + min(count, int(lengths[best])), dtype=np.int32)
