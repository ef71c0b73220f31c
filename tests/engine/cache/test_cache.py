"""Holding, sharing, copying and swapping pages, and what is emitted about it."""

import numpy as np

from engine.cache.cache import Cache
from engine.cache.eviction import LeastRecentlyUsed
from engine.core.clock import Clock, VirtualClock
from engine.core.events import Page


def cache(pages: int = 8, host: int = 4, clock: Clock | None = None) -> tuple[Cache, list]:
    events: list = []
    clock = clock or VirtualClock()
    return Cache(pages, 2, LeastRecentlyUsed(), clock, events.append, host), events


class Ticking(VirtualClock):
    """Every look at it is a second later than the one before."""

    def now(self) -> float:
        self.time += 1.0
        return self.time


def test_events_carry_the_clocks_time_and_none_an_earlier_one_than_that_before_it():
    held, events = cache(pages=6, clock=Ticking())
    pages = held.take("a", 3)
    held.index("a", pages, np.arange(6, dtype=np.int32), held.tree.root(), 0, 3)
    held.drop("a", pages)
    held.swap_out("b", held.take("b", 2), 4)
    held.take("c", 6)
    times = [event.time for event in events]
    assert times == sorted(times) and times[0] > 0.0 and held.cached == 0


def told(events: list) -> list[tuple]:
    return [(e.state, e.page, e.owner, e.start) for e in events if isinstance(e, Page)]


def test_a_fork_shares_every_page_and_copies_the_one_it_writes():
    held, events = cache()
    pages = held.take("a", 2)
    held.share("a.1", pages)
    assert held.pool.references[pages].tolist() == [2, 2]
    own = held.copy("a.1", int(pages[1]), 2)
    assert held.pool.references[pages].tolist() == [2, 1] and held.pool.references[own] == 1
    copied = next(e for e in events if isinstance(e, Page) and e.state == "copy")
    assert (copied.page, copied.parent, copied.owner) == (own, int(pages[1]), "a.1")
    held.drop("a", pages)
    held.drop("a.1", np.array([pages[0], own]))
    assert held.pool.free == 8


def test_a_full_cache_gives_cached_pages_up_but_never_held_ones():
    held, _ = cache(3)
    pages = held.take("a", 2)
    held.index("a", pages, np.zeros(2, np.int32), held.tree.root(), 0, 1)
    held.drop("a", pages)
    assert (held.available, held.cached, held.held) == (3, 1, 0)
    again = held.hit("b", [int(pages[0])])
    assert (held.available, held.cached, held.held) == (2, 0, 1)
    held.take("c", 2)
    assert held.available == 0 and held.pool.references[again] == 1


def test_contents_leave_for_the_host_and_return():
    held, events = cache()
    pages = held.take("a", 3)
    away = held.swap_out("a", pages, 5)
    assert held.pool.free == 8 and held.host.free == 1
    filled = [e.tokens for e in events if isinstance(e, Page) and e.state == "swap_out"]
    assert filled == [2, 2, 1]
    back = held.swap_in("a", away, [])
    assert len(back) == 3 and held.host.free == 4
    assert told(events)[-3:] == [("swap_in", int(p), "a", 2 * i) for i, p in enumerate(back)]


def test_what_still_lies_in_the_tree_need_not_come_back():
    held, _ = cache()
    pages = held.take("a", 2)
    held.index("a", pages, np.zeros(2, np.int32), held.tree.root(), 0, 1)
    away = held.swap_out("a", pages, 4)
    back = held.swap_in("a", away, [int(pages[0])])
    assert back[0] == pages[0] and held.cached == 0


def test_an_owner_that_never_returns_frees_its_host_pages():
    held, events = cache()
    away = held.swap_out("a", held.take("a", 2), 4)
    held.drop_host("a", away)
    assert held.host.free == 4
    last = events[-1]
    assert (last.page, last.state, last.parent) == (-1, "drop", int(away[1]))
