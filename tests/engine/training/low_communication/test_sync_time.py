"""Times of one synchronisation: closed forms where nothing varies, growth where it does."""

from dataclasses import replace

import pytest

from engine.distributed.collectives.halving_doubling import HalvingDoubling
from engine.distributed.collectives.ring import Ring
from engine.distributed.collectives.tree import Tree
from engine.distributed.collectives.two_phase import TwoPhase
from engine.hardware.collectives import (
    halving_doubling_all_reduce,
    pairwise,
    ring_all_reduce,
    tree_all_reduce,
)
from engine.hardware.link import Link
from engine.training.low_communication.sync_time import Net, by_best, by_collective, by_pairs

LINK = Link(name="a link", bandwidth=1e6, latency=0.01)
SIZE = 1e5


def test_without_jitter_they_are_the_textbook_forms():
    assert by_pairs(Net(LINK, 8), SIZE, 0) == pytest.approx(0.11)
    for ranks in (2, 7, 8, 33):
        ring, tree, two = (
            by_collective(each, Net(LINK, ranks), SIZE, 0) for each in (Ring(), Tree(), TwoPhase())
        )
        assert ring == pytest.approx(ring_all_reduce(LINK, ranks, SIZE))
        # All share the port, which is as fast for all of them together.
        assert two == pytest.approx(2 * pairwise(LINK, ranks, SIZE / ranks))
        closed = tree_all_reduce(LINK, ranks, SIZE)
        # Its rounds wait for nobody: where some have no child, the longest path is shorter.
        assert tree == pytest.approx(closed) if ranks in (2, 8) else tree <= closed
    halving = by_collective(HalvingDoubling(), Net(LINK, 8), SIZE, 0)
    assert halving == pytest.approx(halving_doubling_all_reduce(LINK, 8, SIZE))


def test_the_best_all_reduce_depends_on_the_size():
    assert by_best(Net(LINK, 33), 10.0, 0)[0] == "two_phase"
    slow = Net(LINK, 8)
    name, took = by_best(slow, SIZE, 0)
    assert took == min(
        by_collective(each, slow, SIZE, 0)
        for each in (Ring(), Tree(), TwoPhase(), HalvingDoubling())
    )
    assert name != "tree"


@pytest.mark.parametrize("stragglers", [False, True])
def test_jitter_costs_everybody_and_pairs_do_not_care_how_many_there_are(stragglers):
    nets = [Net(LINK, n, 0.5, stragglers) for n in (16, 256)]
    few, many = (by_pairs(net, SIZE, 1) for net in nets)
    assert few > by_pairs(Net(LINK, 16), SIZE, 1)
    assert many == pytest.approx(few, rel=0.2)
    trees = [by_collective(Tree(), net, SIZE, 1) for net in nets]
    assert trees[1] > 1.3 * trees[0]


def test_a_slow_replica_holds_up_a_ring_more_than_slow_messages_do():
    messages = Net(LINK, 64, 0.5)
    slow = [by_collective(Ring(), net, 1e8, 1)
            for net in (messages, replace(messages, stragglers=True))]  # fmt: skip
    assert slow[1] > 1.5 * slow[0]


def test_waiting_for_all_pairs_takes_longer():
    net = Net(LINK, 64, 0.5, stragglers=True)
    assert by_pairs(net, SIZE, 0, barrier=True) > 1.2 * by_pairs(net, SIZE, 0)
