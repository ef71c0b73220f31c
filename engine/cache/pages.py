"""Page (block) pool: which pages are free and how many hold each of the others."""

import numpy as np

from engine.core.memory import demand_zeros


class Pages:
    """`total` pages with reference counts; taking and giving back are single array operations."""

    plain = True  # whether any free page does as well as another

    def __init__(self, total: int) -> None:
        self.total = total
        self.free = total
        self.references = demand_zeros(total, np.int32)
        self.stack = np.arange(total, dtype=np.int32)[::-1].copy()  # free pages, next one last

    def take(self, count: int) -> np.ndarray:
        """`count` free pages, each now held once. At most `free` may be asked for."""
        if count > self.free:
            raise ValueError(f"{count} pages asked for, {self.free} free")
        self.free -= count
        taken = self.stack[self.free : self.free + count][::-1].copy()
        self.references[taken] = 1
        return taken

    def hold(self, pages: np.ndarray) -> None:
        """One more holder for each of these distinct pages."""
        self.references[pages] += 1

    def leave(self, pages: np.ndarray) -> np.ndarray:
        """One holder less for each of these distinct pages; returns those that nobody holds now."""
        self.references[pages] -= 1
        return pages[self.references[pages] == 0]

    def give_back(self, pages: np.ndarray) -> None:
        """Distinct pages that nobody holds become free."""
        count = len(pages)
        self.stack[self.free : self.free + count] = pages
        self.free += count

    def give_back_one(self, page: int) -> None:
        """`give_back` of a single page, without an array."""
        self.stack[self.free] = page
        self.free += 1

    def free_pages(self) -> np.ndarray:
        """The numbers of all free pages."""
        return self.stack[: self.free].copy()
