"""Who goes when the cache is full, under each policy, and what is said about it."""

import numpy as np
import pytest

from engine.cache.cache import Cache
from engine.cache.eviction import Ages, Eviction
from engine.core.clock import VirtualClock
from engine.core.config import kinds
from engine.core.events import Mark, Page


def cache(kind: str, pages: int = 4) -> tuple[Cache, list]:
    events: list = []
    return Cache(pages, 1, kinds(Eviction)[kind](), VirtualClock(), events.append), events


def remember(cache: Cache, value: int, group: int = -1) -> int:
    """One page with one token, indexed and left by its owner."""
    pages = cache.take("a", 1)
    cache.index("a", pages, np.array([value], np.int32), cache.tree.root(), 0, 1, group)
    cache.drop("a", pages)
    return int(pages[0])


def use(cache: Cache, page: int) -> None:
    cache.drop("b", cache.hit("b", [page]))


def evicted(events: list) -> list[int]:
    return [e.page for e in events if isinstance(e, Page) and e.state == "free" and e.why]


@pytest.mark.parametrize(
    ("kind", "order"),
    [
        ("lru", [2, 0, 1]),  # idle since steps 2, 4, 6
        ("fifo", [0, 1, 2]),  # filled in steps 0, 1, 2
        ("least_frequent", [2, 1, 0]),  # joined 0, 1 and 2 times
    ],
)
def test_each_policy_has_its_own_victims(kind, order):
    held, events = cache(kind, 3)
    for step in range(3):
        held.step = step
        assert remember(held, step) == step
    for step, page in ((3, 0), (4, 0), (6, 1)):
        held.step = step
        use(held, page)
    for _ in range(3):
        held.take("c", 1)
    assert evicted(events) == order


@pytest.mark.parametrize(
    ("policy", "step", "reason"),
    [
        ("lru", 41, "least recently used, 38 steps idle"),
        ("lru", 4, "least recently used, 1 step idle"),
        ("fifo", 4, "oldest, filled 1 step ago"),
    ],
)
def test_an_eviction_is_told_as_a_sentence(policy, step, reason):
    held, events = cache(policy, 1)
    held.step = 3
    remember(held, 7)
    held.step = step
    held.take("b", 1)
    assert [e.text for e in events if isinstance(e, Mark)] == [f"evicted page 0: {reason}"]


def test_children_go_before_their_parents():
    held, events = cache("lru")
    pages = held.take("a", 3)
    held.index("a", pages, np.arange(3, dtype=np.int32), held.tree.root(), 0, 3)
    held.drop("a", pages)
    held.take("b", 4)
    assert evicted(events) == pages.tolist()[::-1]


def test_what_the_plan_never_needs_again_is_freed_at_once():
    held, events = cache("next_use")
    held.expect(0, 5)
    page = remember(held, 1, group=0)
    assert held.cached == 1
    loose = remember(held, 2)
    assert held.cached == 1 and evicted(events) == [loose]
    held.expect(0)
    assert held.cached == 0 and evicted(events) == [loose, page]


def test_the_plan_keeps_what_it_needs_soonest():
    held, events = cache("next_use", 2)
    held.expect(0, 9)
    held.expect(1, 4)
    late, soon = remember(held, 1, group=0), remember(held, 2, group=1)
    held.take("b", 1)
    assert evicted(events) == [late] and soon in held.tree


def test_reset_forgets_every_page_nobody_holds():
    held, _ = cache("fifo")
    for value in range(3):
        remember(held, value)
    kept = held.hit("b", [1])
    assert held.reset() == 2
    assert held.pool.free == 3 and 1 in held.tree
    held.drop("b", kept)
    assert held.cached == 1


def test_every_policy_answers_for_any_page():
    for policy in kinds(Eviction).values():
        ages = Ages.of(3)
        worth = policy().worth(np.arange(3), ages)
        assert worth.shape == (3,) and worth.dtype == np.float64
        assert policy().reason(1, ages, 5)


def test_the_heap_does_not_grow_with_use():
    held, _ = cache("lru")
    page = remember(held, 1)
    for step in range(2000):
        held.step = step
        use(held, page)
    assert len(held.idle) <= 64


def test_a_plan_for_many_idle_pages_reaches_each_of_them():
    """They are told the other way around: memory that is not in order."""
    held, events = cache("next_use", 8)
    held.expect(0, 3)
    held.expect(1, 3)
    late = [remember(held, value, group=0) for value in range(3)]
    soon = [remember(held, value, group=1) for value in range(3, 8)]
    held.expect(1, 4)
    held.expect(0, 9)
    for _ in range(8):
        held.take("c", 1)
    assert sorted(evicted(events)[:3]) == late and sorted(evicted(events)[3:]) == soon
