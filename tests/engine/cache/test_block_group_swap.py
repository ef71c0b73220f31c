"""Swap by block groups: contiguous pages, copies kept by contents, contents equal bit for bit."""

import numpy as np
import torch

from engine.cache.block_group_swap import BlockGroupSwap, runs
from engine.cache.block_groups import BlockGroups
from engine.cache.cache import Cache
from engine.cache.eviction import LeastRecentlyUsed
from engine.cache.tensors import Storage
from engine.core.clock import VirtualClock
from engine.models.kv import CacheSpec

SIZE = 2


def swap(pages: int = 16, host: int = 16, room: int = 2, **how: bool) -> BlockGroupSwap:
    clock = VirtualClock()
    cache = Cache(pages, SIZE, LeastRecentlyUsed(), clock, lambda event: None, host)
    asked = {"overlaps": False, "reuses": True, "stale": False, **how}
    return BlockGroupSwap(cache, room, **asked)


def tokens(count: int) -> np.ndarray:
    return np.arange(count, dtype=np.int32)


def test_a_group_lies_together_and_grows_into_its_room():
    pool = BlockGroups(32, 4, VirtualClock())
    first, second = pool.take(5), pool.take(5)
    assert np.ptp(first) == np.ptp(second) == 4
    assert second[0] - first[-1] - 1 == 4  # the room that the first may grow into
    pool.after = np.array([first[-1], second[-1]])
    assert pool.take(2).tolist() == [first[-1] + 1, second[-1] + 1]
    rest = pool.take(pool.free)
    assert len(np.unique(np.concatenate([first, second, rest]))) == 30 and pool.free == 0


def test_runs_are_broken_where_either_side_is():
    pairs = np.array([(4, 0), (5, 1), (6, 3), (9, 4)])
    assert runs(pairs).tolist() == [2, 1, 1] and not len(runs(pairs[:0]))


def test_pages_that_return_hold_what_left_bit_for_bit():
    held = swap()
    storage = Storage(CacheSpec(((("k", 1, 4), ("v", 1, 4)),) * 2, "float32"), 16, SIZE, 16)
    pages = held.cache.take("a", 4)
    held.cache.take("b", 9)  # no room in a row is left: it comes back in pieces
    for layer in storage.kv.tensors:
        for tensor in layer.values():
            tensor.normal_()
    before = [t[pages].clone() for layer in storage.kv.tensors for t in layer.values()]
    away = held.send("a", pages, tokens(7), "")
    storage.swap_out(held.movements()["swap_out"])
    held.cache.take("c", 5)
    for layer in storage.kv.tensors:
        for tensor in layer.values():
            tensor[:16].zero_()
    held.cache.drop("c", np.flatnonzero(held.cache.pool.references)[:2].astype(np.int32))
    held.cache.drop("b", np.flatnonzero(held.cache.pool.references)[:2].astype(np.int32))
    back = held.bring("a", away, [])
    moved = held.movements()
    storage.swap_in(moved["swap_in"])
    after = [t[back] for layer in storage.kv.tensors for t in layer.values()]
    assert all(torch.equal(one, other) for one, other in zip(before, after, strict=True))
    assert moved["runs"][1].sum() == 4 and len(moved["runs"][1]) <= 4


def test_what_leaves_again_moves_only_what_is_new():
    held = swap()
    pages = held.cache.take("a", 3)
    away = held.send("a", pages, tokens(5), "")
    assert len(held.movements()["swap_out"]) == 3
    pages = held.bring("a", away, [])
    pages = np.append(pages, held.cache.take("a", 1))
    held.movements()
    held.send("a", pages, tokens(8), "")
    assert len(held.movements()["swap_out"]) == 2  # two full pages are still there


def test_a_next_turn_finds_its_beginning_on_the_host_until_others_need_the_room():
    held, longer = swap(host=4), np.array([0, 1, 2, 3, 9, 9], np.int32)
    pages = held.cache.take("a", 3)
    held.ended(pages, tokens(6), "")
    held.cache.drop("a", pages)
    assert held.recall(longer, "other") is None
    found = held.recall(longer, "")
    assert found is not None and len(found) == 2 and held.room == 2
    held.cache.drop_host("b", found)
    assert held.room == 4 and held.host.free == 1
    held.send("c", held.cache.take("c", 4), tokens(8) + 50, "")
    assert held.recall(tokens(6), "") is None and held.room == 0


def test_a_page_that_is_being_copied_is_waited_for_and_taken_last():
    held = swap(pages=6, overlaps=True)
    held.copy_seconds = lambda pages_R: float(pages_R.sum())
    pages = held.cache.take("a", 4)
    away = held.send("a", pages, tokens(8), "")
    assert held.movements()["stall"] == 0.0
    held.cache.take("b", 2)  # the two that are free already
    assert held.movements()["stall"] == 0.0
    held.cache.take("c", 1)
    assert held.movements()["stall"] == 4.0
    held.cache.clock.wait_until(4.0)
    held.cache.drop("b", np.flatnonzero(held.cache.pool.references)[:1].astype(np.int32))
    pages = held.bring("a", away, [])
    assert held.landing == {"a": 8.0} and held.movements()["stall"] == 0.0
    held.leaves("a")
    assert not held.landing
    held.cache.drop("a", pages)
    held.cache.take("d", 4)  # what is still on its way to "a" must not be written over
    assert held.movements()["stall"] == 4.0


def test_who_nobody_else_can_run_beside_is_waited_for():
    held = swap(pages=6, overlaps=True)
    away = held.send("a", held.cache.take("a", 4), tokens(8), "")
    held.movements()
    held.copy_seconds = lambda pages_R: float(pages_R.sum())
    held.bring("a", away, [])
    held.wait_for("a")
    assert held.movements()["stall"] == 4.0 and not held.landing


def test_what_is_forgotten_is_not_found_again_but_by_who_waits_for_it():
    held = swap(host=4)
    for owner, first in (("a", 0), ("b", 50)):
        pages = held.cache.take(owner, 2)
        held.ended(pages, tokens(4) + first, "")
        held.cache.drop(owner, pages)
    assert held.recall(tokens(5), "") is not None
    held.forget()
    assert held.recall(tokens(5) + 50, "") is None and held.host.free == 2
