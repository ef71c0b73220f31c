"""Times of one synchronisation: closed forms where nothing varies, growth where it does."""

import pytest

from engine.hardware.collectives import ring_all_reduce, tree_all_reduce
from engine.hardware.link import Link
from engine.training.low_communication.sync_time import by_pairs, by_ring, by_tree

LINK = Link(name="a link", bandwidth=1e6, latency=0.01)


def test_without_jitter_they_are_the_textbook_forms():
    assert by_pairs(LINK, 8, 1e5, 0.0, 0) == pytest.approx(0.11)
    for ranks in (2, 7, 8, 33):
        ring, tree = (timed(LINK, ranks, 1e5, 0.0, 0) for timed in (by_ring, by_tree))
        assert ring == pytest.approx(ring_all_reduce(LINK, ranks, 1e5))
        closed = tree_all_reduce(LINK, ranks, 1e5)
        # Its rounds wait for nobody: where some have no child, the longest path is shorter.
        assert tree == pytest.approx(closed) if ranks in (2, 8) else tree <= closed


def test_jitter_costs_everybody_and_pairs_do_not_care_how_many_there_are():
    few, many = (by_pairs(LINK, n, 1e5, 0.5, 1) for n in (16, 256))
    assert few > by_pairs(LINK, 16, 1e5, 0.0, 1)
    assert many == pytest.approx(few, rel=0.1)
    trees = [by_tree(LINK, n, 1e5, 0.5, 1) for n in (16, 256)]
    assert trees[1] > 1.5 * trees[0]
