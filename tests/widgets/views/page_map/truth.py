"""A page cache driven at random by legal events, kept as plainly as can be: the truth for folds."""

import random

from engine.core.events import Page


class RandomCache:
    """Does one legal thing at a time and says so."""

    def __init__(self, seed: int, pages: int = 24, host: int = 10, size: int = 4) -> None:
        self.random, self.size, self.time = random.Random(seed), size, 0.0
        self.pages, self.host_pages = pages, host
        self.rows: dict[str, dict[int, int]] = {}  # owner -> start -> page
        self.swapped: dict[str, dict[int, int]] = {}  # owner -> start -> host page
        self.parents: dict[int, int] = {}  # indexed page -> parent
        self.born = 0

    @property
    def held(self) -> dict[int, set[str]]:
        found: dict[int, set[str]] = {}
        for owner, row in self.rows.items():
            for page in row.values():
                found.setdefault(page, set()).add(owner)
        return found

    def free(self) -> list[int]:
        return [p for p in range(self.pages) if p not in self.held and p not in self.parents]

    def cached(self) -> list[int]:
        return [p for p in self.parents if p not in self.held]

    def step(self) -> list[Page]:
        """The events of one thing that happens; none where it cannot."""
        self.time += self.random.random()
        what = self.random.choice(
            ["take", "take", "hit", "share", "copy", "index", "drop", "swap_out", "swap_in",
             "evict", "give_up"]
        )  # fmt: skip
        return getattr(self, what)()

    def event(self, page: int, owner: str, state: str, **more: object) -> Page:
        return Page(self.time, page, owner, state, **more)

    def someone(self) -> str | None:
        return self.random.choice(sorted(self.rows)) if self.rows else None

    def start(self, owner: str) -> int:
        return len(self.rows[owner]) * self.size

    def take(self) -> list[Page]:
        free = self.free()
        if not free:
            return []
        owner = self.someone()
        if owner is None or self.random.random() < 0.3:
            owner, self.born = f"r{self.born}", self.born + 1
            self.rows[owner] = {}
        page, start = self.random.choice(free), self.start(owner)
        self.rows[owner][start] = page
        return [self.event(page, owner, "take", start=start)]

    def hit(self) -> list[Page]:
        path, page = [], -1
        while below := [p for p, above in self.parents.items() if above == page]:
            page = self.random.choice(sorted(below))
            path.append(page)
        if not path:
            return []
        owner, self.born = f"r{self.born}", self.born + 1
        self.rows[owner] = {i * self.size: p for i, p in enumerate(path)}
        return [self.event(p, owner, "hit", start=i * self.size) for i, p in enumerate(path)]

    def share(self) -> list[Page]:
        parent = self.someone()
        if parent is None:
            return []
        child, self.born = f"{parent}.{self.born}", self.born + 1
        self.rows[child] = dict(self.rows[parent])
        return [self.event(p, child, "share", start=s) for s, p in self.rows[child].items()]

    def copy(self) -> list[Page]:
        owner, free = self.someone(), self.free()
        if owner is None or not free:
            return []
        start = max(self.rows[owner])
        old, new = self.rows[owner][start], free[0]
        self.rows[owner][start] = new
        found = [self.event(new, owner, "copy", start=start, parent=old)]
        return [*found, *self.left(old, owner, start)]

    def left(self, page: int, owner: str, start: int) -> list[Page]:
        found = [self.event(page, owner, "drop", start=start)]
        if page not in self.held and page not in self.parents:
            found.append(self.event(page, "", "free"))
        return found

    def index(self) -> list[Page]:
        owner = self.someone()
        if owner is None:
            return []
        for start, page in sorted(self.rows[owner].items()):
            above = self.rows[owner].get(start - self.size, -1)
            if page not in self.parents and (start == 0 or above in self.parents):
                self.parents[page] = above
                return [self.event(page, owner, "index", start=start, tokens=4, parent=above)]
        return []

    def drop(self) -> list[Page]:
        owner = self.someone()
        if owner is None:
            return []
        found = []
        for start, page in sorted(self.rows.pop(owner).items(), reverse=True):
            found += self.left(page, owner, start)
        return found

    def swap_out(self) -> list[Page]:
        owner = self.someone()
        taken = {h for row in self.swapped.values() for h in row.values()}
        free = [h for h in range(self.host_pages) if h not in taken]
        if owner is None or len(free) < len(self.rows[owner]):
            return []
        found, row = [], self.rows.pop(owner)
        self.swapped[owner] = dict(zip(row, free, strict=False))
        for start, page in row.items():
            host = self.swapped[owner][start]
            found.append(self.event(page, owner, "swap_out", start=start, parent=host))
        held = self.held
        gone = [p for p in row.values() if p not in held and p not in self.parents]
        return found + [self.event(p, "", "free") for p in gone]

    def swap_in(self) -> list[Page]:
        free = self.free()
        for owner, row in self.swapped.items():
            if len(row) <= len(free):
                self.rows[owner] = dict(zip(row, free, strict=False))
                del self.swapped[owner]
                return [
                    self.event(page, owner, "swap_in", start=start, parent=row[start])
                    for start, page in self.rows[owner].items()
                ]
        return []

    def give_up(self) -> list[Page]:
        """A swapped request ends: its host pages are given up one by one."""
        if not self.swapped:
            return []
        owner = self.random.choice(sorted(self.swapped))
        row = self.swapped.pop(owner)
        return [self.event(-1, owner, "drop", start=s, parent=h) for s, h in row.items()]

    def evict(self) -> list[Page]:
        leaves = [p for p in self.cached() if p not in self.parents.values()]
        if not leaves:
            return []
        page = self.random.choice(sorted(leaves))
        del self.parents[page]
        return [self.event(page, "", "free", why="least recently used")]
