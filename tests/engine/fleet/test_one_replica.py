"""One replica of a fleet as an engine alone: together they tell all that the fleet did, once."""

from collections import Counter

import pytest

from engine.core.config import update
from engine.core.errors import BadInput
from engine.core.events import Branch, Level, Page, Span, Token
from engine.core.run import Run
from engine.fleet.config import FleetConfig
from engine.fleet.one_replica import ENGINE, of_replica, watched
from engine.fleet.run import run
from tests.engine.fleet.test_fleet import APART, FAULTY, SMALL


def alone(config, number):
    return Run.execute(of_replica(run), update(config, {"watch": number})).log


@pytest.mark.parametrize("changes", [{}, APART, FAULTY["those who wait move"], FAULTY["all die"]])
def test_replicas_together_tell_every_token_once(changes):
    config = update(SMALL, changes)
    whole = Run.execute(run, config).log
    each = [alone(config, number) for number in range(config.replicas)]
    told = Counter(token for log in each for token in log.of(Token))
    assert told == Counter(whole.of(Token)) and set(told.values()) == {1}
    steps = Counter((s.start, s.time, s.tag) for s in whole.of(Span) if s.name == "step")
    own = [s for log in each for s in log.of(Span) if s.name == "step"]
    assert Counter((s.start, s.time, s.tag) for s in own) == steps
    assert {s.lane for s in own} == {ENGINE}


def test_its_pages_are_its_own_and_its_requests_end():
    config = update(SMALL, {**APART, "watch": 1})
    log, whole = alone(config, 1), Run.execute(run, config).log
    assert log.of(Page) == whole.of(Page)
    assert {level.lane for level in log.of(Level)} == {ENGINE}
    assert "fleet" not in log.opened.facts and log.opened.facts["pages"] == config.engine.pages
    states = Counter(branch.state for branch in log.of(Branch))
    assert states["queued"] == states["finished"] > 0


def test_what_prefills_says_where_its_requests_went():
    log = alone(update(SMALL, APART), 0)
    gone = {branch.why for branch in log.of(Branch) if branch.state == "finished"}
    assert gone <= {"sent to replica 1", "sent to replica 2", ""} and len(gone) > 1


@pytest.mark.parametrize("watch", [-1, 3])
def test_no_such_replica_is_refused(watch):
    with pytest.raises(BadInput, match=f"replica {watch}, there are 3"):
        watched(update(SMALL, {"watch": watch}))


def test_what_has_no_fleet_is_refused():
    with pytest.raises(BadInput, match="no fleet"):
        watched(SMALL.engine)
    assert watched(update(FleetConfig(), {"tokens": False})).tokens
