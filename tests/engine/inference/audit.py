"""What must hold between any two operations, and a reader that knows Page events alone."""

from collections import Counter

from engine.core.events import Page
from engine.inference.engine import Engine


def audit(engine: Engine) -> None:
    """free + cached + held = total, and every reference count equals its holders."""
    cache, rows = engine.cache, engine.scheduler.rows
    pool, tree = cache.pool, cache.tree
    free = pool.free_pages().tolist()
    assert len(set(free)) == len(free), "a page is free twice"
    holders = Counter(p for row in range(rows.count) for p in rows.table(row).tolist())
    assert -1 not in holders
    assert holders == {p: int(r) for p, r in enumerate(pool.references) if r}
    indexed = {p for p in range(pool.total) if p in tree}
    cached = {p for p in indexed if not pool.references[p]}
    assert not indexed & set(free) and not set(holders) & set(free)
    assert len(cached) == cache.cached
    assert pool.free + cache.cached + len(holders) == pool.total
    parents = {p: tree.parent(p) for p in indexed}
    assert all(parent < 0 or parent in indexed for parent in parents.values())
    fanout = Counter(parents.values())
    assert all(tree.children(p) == fanout.get(p, 0) for p in indexed)
    assert {p for p in cached if not tree.children(p)} == {p for p in cached if p in cache.idle}
    for page in holders:
        above = parents.get(page, -1)
        assert above < 0 or pool.references[above], "a held page hangs under one nobody holds"
    swapped = [r for r in engine.requests.values() if r.host_pages is not None]
    on_host = [p for r in swapped for p in r.host_pages.tolist()]
    assert len(set(on_host)) == len(on_host)
    assert cache.host.free + len(on_host) == cache.host.total
    waiting = [r for r in engine.requests.values() if r in engine.scheduler.queue]
    assert len(waiting) == len(engine.scheduler.queue)
    for number, request in enumerate(engine.scheduler.running.requests):
        assert request.row == number
    audit_states(engine)


def audit_states(engine: Engine) -> None:
    """Each state page is free, or held by just those rows and that page of the tree."""
    cache, rows = engine.cache, engine.scheduler.rows
    if cache.states is None:
        return
    states = cache.states
    holders = Counter(page for page in rows.state[: rows.count].tolist() if page >= 0)
    holders.update(states.kept.values())
    assert holders == {page: int(r) for page, r in enumerate(states.pool.references) if r}
    assert states.pool.free + len(holders) == states.pool.total
    assert all(page in cache.tree for page in states.kept)
    assert len(states.kept) <= states.most
    away = [r.host_state for r in engine.requests.values() if r.host_state >= 0]
    assert len(set(away)) == len(away) == states.host.total - states.host.free
    for row in range(rows.count):
        assert (rows.state[row] >= 0) or not rows.cached[row]


class Reader:
    """Folds Page events: who has which page at which position, what is indexed, what is free."""

    def __init__(self, pages: int) -> None:
        self.tables: dict[str, dict[int, int]] = {}  # owner -> start -> page
        self.free = set(range(pages))
        self.parents: dict[int, int] = {}
        self.host: dict[str, dict[int, int]] = {}  # owner -> start -> host page

    def read(self, events: list) -> None:
        for event in events:
            if isinstance(event, Page) and not event.kind:
                self.fold(event)

    def fold(self, event: Page) -> None:
        own = self.tables.setdefault(event.owner, {})
        away = self.host.setdefault(event.owner, {})
        match event.state:
            case "take" | "copy":
                assert event.page in self.free, "took a page that was not free"
                self.free.discard(event.page)
                own[event.start] = event.page
            case "hit" | "share":
                assert event.page not in self.free
                own[event.start] = event.page
            case "index":
                assert own[event.start] == event.page
                self.parents[event.page] = event.parent
            case "drop" if event.page < 0:
                assert away.pop(event.start) == event.parent
            case "drop":
                # A page that gave way to another of the same contents is left after that one came.
                if own.get(event.start) == event.page:
                    del own[event.start]
            case "free":
                assert event.page not in self.free
                self.parents.pop(event.page, None)
                self.free.add(event.page)
            case "swap_out":
                assert own.pop(event.start) == event.page
                away[event.start] = event.parent
            case "swap_in":
                assert away.pop(event.start) == event.parent
                self.free.discard(event.page)
                own[event.start] = event.page

    def agrees(self, engine: Engine) -> None:
        cache, running = engine.cache, engine.scheduler.running
        assert self.free == set(cache.pool.free_pages().tolist())
        tree = cache.tree
        truth = {p: max(-1, tree.parent(p)) for p in range(cache.pool.total) if p in tree}
        assert self.parents == truth
        seen = {owner: table for owner, table in self.tables.items() if table}
        held = {}
        for row, name in enumerate(running.names):
            table = running.rows.table(row).tolist()
            if table:
                held[name] = {i * cache.page_size: page for i, page in enumerate(table)}
        assert seen == held
        away = {owner: list(table.values()) for owner, table in self.host.items() if table}
        swapped = [r for r in engine.requests.values() if r.host_pages is not None]
        assert away == {r.id: r.host_pages.tolist() for r in swapped if len(r.host_pages)}
