"""The page pool: taking, holding, leaving."""

import numpy as np
import pytest

from engine.cache.pages import Pages


def test_taken_pages_are_distinct_and_held_once():
    pool = Pages(10)
    taken = pool.take(7)
    assert len(set(taken.tolist())) == 7 and pool.free == 3
    assert (pool.references[taken] == 1).all()


def test_a_page_is_free_again_only_after_its_last_holder_left():
    pool = Pages(4)
    pages = pool.take(2)
    pool.hold(pages)
    assert not len(pool.leave(pages))
    left = pool.leave(pages)
    assert sorted(left.tolist()) == sorted(pages.tolist())
    pool.give_back(left)
    assert pool.free == 4 and sorted(pool.free_pages().tolist()) == [0, 1, 2, 3]


def test_more_pages_than_are_free_are_refused():
    pool = Pages(3)
    pool.take(2)
    with pytest.raises(ValueError, match="2 pages asked for, 1 free"):
        pool.take(2)


def test_one_page_comes_back_as_many_do():
    pool = Pages(3)
    pages = pool.take(3)
    pool.leave(pages)
    pool.give_back(pages[:2])
    pool.give_back_one(int(pages[2]))
    assert sorted(pool.free_pages().tolist()) == [0, 1, 2]
    assert np.array_equal(np.sort(pool.take(3)), [0, 1, 2])
