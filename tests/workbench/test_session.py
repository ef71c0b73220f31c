"""A session: one run for many turns of a knob, the one before stopped, few kept."""

import time

import pytest

from engine.core.errors import BadInput
from tests.workbench.toy import TOY
from workbench.session import KEEP, Session, changed


@pytest.fixture
def session():
    made = Session(TOY.driver, TOY.config, study=TOY.slug)
    yield made
    made.close()


def test_many_turns_at_once_start_one_run(session):
    for count in range(1, 30):
        session.turn({"count": count})
    run = session.settle(5)
    assert len(session.runs) == 1
    assert run.config.count == 29


def test_a_new_run_stops_the_one_before(session):
    session.turn({"count": 1_000_000, "wait": 0.001})
    first = session.begin()
    session.turn({"count": 2, "wait": 0.0})
    session.settle(5)
    first.thread.join(5)
    assert first.log.closed.reason == "stopped"
    assert session.run.log.closed.reason == "finished"


def test_a_bad_value_changes_nothing(session):
    before = session.config
    with pytest.raises(BadInput, match="count"):
        session.turn({"count": 0})
    assert session.config == before
    assert session.run is None


def test_a_turned_knob_starts_a_run_by_itself(session):
    session.turn({"count": 3})
    until = time.monotonic() + 5
    while session.run is None and time.monotonic() < until:
        time.sleep(0.01)
    assert session.run is not None


def test_the_oldest_runs_go_first(session):
    for seed in range(KEEP + 3):
        session.seed = seed
        session.begin().wait(5)
    assert len(session.runs) == KEEP
    assert session.runs[0].log.opened.seed == 3


def test_a_closed_session_starts_nothing(session):
    session.close()
    session.turn({"count": 3})
    assert session.begin() is None
    assert session.runs == []


def test_reset_goes_back_to_the_start(session):
    session.turn({"count": 9})
    session.reset()
    assert session.config == TOY.config


def test_what_differs_is_listed_by_knob():
    after = TOY.configured({"count": 7})
    assert changed(TOY.config, after) == {"count": (5, 7)}
