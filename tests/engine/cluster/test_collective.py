"""One collective as a run: curves, messages, links; what is refused; the study's own numbers."""

from typing import get_args

import numpy as np
import pytest

from engine.cluster.collective import Algorithm, CollectiveConfig, Compared, compared
from engine.cluster.collective_run import TIME, in_words, run
from engine.core.config import kinds, update
from engine.core.errors import BadInput
from engine.core.events import Mark, Move, Span
from engine.core.run import Run
from engine.distributed.collective import OPERATIONS, Collective
from widgets.fold import History
from widgets.view import view


@pytest.mark.parametrize("operation", OPERATIONS)
def test_every_operation_is_a_run_with_curves_messages_and_links(operation):
    log = Run.execute(run, CollectiveConfig(operation=operation, points=4)).log
    panels = History(log, view("curves").fold()).latest().frame()["panels"]
    assert [panel["name"] for panel in panels][0] == TIME.title
    shown = History(log, view("topology").fold()).latest().frame()
    assert shown["links"] and shown["link_use"].max() <= 1 + 1e-6
    assert len(shown["names"]) == 16
    moves = log.of(Move)
    assert log.duration == pytest.approx(max(move.time for move in moves))
    assert {span.lane for span in log.of(Span)} == {f"rank {rank}" for rank in range(16)}
    assert any("fastest" in mark.text for mark in log.of(Mark))


def test_curves_of_the_clock_rise_and_the_choice_is_the_lowest():
    found = compared(CollectiveConfig(points=5))
    assert set(found.seconds) >= {"ring", "tree", "star", "hierarchical"}
    for seconds in found.seconds.values():
        assert (np.diff(seconds) > 0).all()
    table = np.array([found.seconds[kind] for kind in found.seconds])
    assert (found.chosen() == table.min(0)).all()


def test_crossings_are_told_in_words():
    took = {"a": np.array([1.0, 2.0, 9.0]), "b": np.array([2.0, 3.0, 4.0])}
    found = Compared(np.array([1e3, 2.5 * 2**20, 1e9]), took)
    assert found.crossings() == [("a", 1e3, 2.5 * 2**20), ("b", 1e9, 1e9)]
    assert in_words(found) == "fastest: a up to 2.5 MiB, then b"


@pytest.mark.parametrize(("turned", "says"), [
    ({"algorithm": "ring", "operation": "all_gather"}, "no all_gather; one of: fastest, gather_r"),
    ({"algorithm": "hierarchical", "ranks": 12}, "12 ranks in nodes of 1; take several whole"),
    ({"smallest": 1e6, "largest": 1e3}, "the largest has to be larger"),
    ({"adapters": 3}, "do not divide among 3 adapters"),
    ({"cluster": "nowhere"}, "cluster 'nowhere': no data sheet"),
    ({"algorithm": "ring", "ranks": 1024}, "at most 200,000 are played; take fewer ranks"),
    ({"real": True, "ranks": 64}, "real ranks on one machine are for 16 at most"),
    ({"real": True, "operation": "all_to_all"}, "real ranks do all_reduce alone"),
])  # fmt: skip
def test_what_does_not_fit_is_refused(turned, says):
    with pytest.raises(BadInput, match=says):
        Run.execute(run, update(CollectiveConfig(points=2), turned))


def test_every_algorithm_can_be_chosen():
    assert set(get_args(Algorithm)) == {"fastest", *kinds(Collective)}
