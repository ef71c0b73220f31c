"""What a person cannot see is neither folded nor drawn; what comes into sight catches up."""

import pytest

from engine.core.run import Run
from tests.widgets.made_runs import serving
from widgets.stage.stage import AT_FIRST, Stage

VIEWS = ("levels", "latency", "request_lanes", "page_map")


@pytest.fixture
def stage():
    made = Stage(VIEWS)
    made.open(Run(serving(requests=6)))
    return made


def settle(stage):
    for _ in range(200):
        if stage.tick():
            return
    raise AssertionError("the stage never came to rest")


def shown(stage):
    return [feed.view.name for feed in stage.feeds if feed.folded]


def test_without_a_browser_every_view_is_fed(stage):
    settle(stage)
    assert shown(stage) == list(VIEWS)


def test_a_page_arrives_with_its_first_views(stage):
    stage.hosted()
    settle(stage)
    assert shown(stage) == list(VIEWS[:AT_FIRST]) and stage.transport.bar.cards == len(VIEWS)


def test_what_comes_into_sight_catches_up_and_what_leaves_it_rests(stage):
    stage.hosted()
    stage.transport.bar.sight = [False, False, False, True]
    settle(stage)
    assert shown(stage) == ["page_map"]
    stage.transport.bar.sight = [True, False, False, False]
    settle(stage)
    assert shown(stage) == ["levels", "page_map"]
    before = stage.feeds[3].folded
    longer = Run(serving(requests=9))
    stage.open(longer)
    settle(stage)
    assert stage.feeds[0].folded == len(longer.log) != before
    assert stage.feeds[3].folded == 0


@pytest.mark.parametrize("told", [[], [True], ["yes"] * 4, [1, 0, None, {}], [True] * 5])
def test_what_no_browser_says_shows_nothing_more(stage, told):
    stage.hosted()
    stage.transport.bar.sight = told
    assert len(stage.sighted) in (0, AT_FIRST)


def test_a_stage_at_rest_does_nothing(stage, monkeypatch):
    settle(stage)
    assert stage.tick()
    monkeypatch.setattr(stage, "_show", lambda *_: pytest.fail("drew what is shown already"))
    assert stage.tick()
    stage.cursor.seek(0.0)
    with pytest.raises(pytest.fail.Exception):
        stage.tick()
