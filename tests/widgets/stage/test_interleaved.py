"""Interleaved lanes: a request's lanes of all runs stand together, each as in its own run."""

import pytest

from engine.core.errors import BadInput
from engine.core.events import Token
from engine.core.log import Log
from engine.core.run import Run
from tests.widgets.made_runs import serving
from widgets.stage.compare import Compare
from widgets.stage.interleaved import can_interleave, interleaved
from widgets.views.request_lanes.fold import RequestLanes


def folded(fold, log: Log):
    for event in log:
        fold.add(event)
    return fold.frame()


def test_each_lane_is_as_in_its_own_run_and_a_requests_lanes_stand_together():
    logs = [serving(requests=6), serving(seed=3, requests=9), serving(seed=5, requests=6)]
    log, view = interleaved(logs, "ABC")
    frame = folded(view.fold(), log)
    assert frame["names"][:3] == ["r0 A", "r0 B", "r0 C"]
    assert len(set(frame["hue"][:3])) == 1
    for letter, own in zip("ABC", logs, strict=True):
        alone = folded(RequestLanes(), own)
        for place, name in enumerate(alone["names"]):
            there = frame["names"].index(f"{name} {letter}")
            assert frame["ended"][there] == pytest.approx(alone["ended"][place], nan_ok=True)
            ticks = [f["tick_time"][f["tick_lane"] == at] for f, at in
                     ((frame, there), (alone, place))]  # fmt: skip
            assert list(ticks[0]) == list(ticks[1])
    assert len(log.of(Token)) == sum(len(own.of(Token)) for own in logs)


def test_runs_that_go_on_or_share_no_request_are_not_interleaved():
    over = serving(requests=3)
    going = Log(over.events[:-1])
    assert can_interleave([over, over]) and not can_interleave([over, going])
    assert not can_interleave([over, Log([over.events[0], over.events[-1]])])
    with pytest.raises(BadInput, match="no request in common"):
        interleaved([over, going], "AB")


def test_modelled_lanes_among_measured_ones_are_told_as_modelled():
    logs = [serving(requests=3), serving(requests=3, clock="virtual")]
    log, view = interleaved(logs, "AB")
    assert log.opened.clock == "virtual"
    frame = folded(view.fold(), log)
    assert [name[-1] == "B" for name in frame["names"]] == frame["modelled_lane"].tolist()
    for same in (logs[:1] * 2, logs[1:] * 2):  # all of one kind: nothing is told lane by lane
        log, view = interleaved(same, "AB")
        assert "modelled_lane" not in folded(view.fold(), log)


def test_the_comparison_shows_them_in_one_view():
    runs = [Run(serving(requests=4)), Run(serving(seed=2, requests=4))]
    made = Compare(runs, ["levels"], lanes=True)
    assert [feed.view.name for feed in made.stage.feeds] == ["request_lanes"]
    made.__panel__()
    assert made.stage.feeds[0].failure == ""
