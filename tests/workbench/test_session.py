"""A session: one run for many turns of a knob, the one before stopped, few kept."""

import threading
import time

import pytest

from engine.core.errors import BadInput
from engine.core.events import Span
from tests.workbench.toy import TOY
from workbench import session as sessions
from workbench.pages.study_panel import StudyPanel
from workbench.session import IDLE, KEEP, REST, Session, changed


@pytest.fixture
def session():
    made = Session(TOY.driver, TOY.config, study=TOY.slug)
    yield made
    made.close()


def test_many_turns_at_once_start_two_runs(session, monkeypatch):
    monkeypatch.setattr(session, "rest", 60.0)
    for count in range(1, 30):
        session.turn({"count": count})
    session.settle(60)
    assert [run.config.count for run in session.runs] == [1, 29]


def test_a_knob_starts_a_run_at_once_and_more_of_it_when_that_has_had_its_while(
    session, monkeypatch
):
    waits, now = [], [10.0]

    class Timer(threading.Timer):
        def __init__(self, seconds, act):
            super().__init__(seconds, act)
            waits.append(seconds)

        def start(self):
            pass

    monkeypatch.setattr(sessions.threading, "Timer", Timer)
    monkeypatch.setattr(sessions.time, "monotonic", lambda: now[0])
    session.turn({"count": 1})
    assert len(session.runs) == 1 and waits == []
    for later, count in ((0.01, 2), (0.02, 3), (0.05, 4)):
        now[0] = 10.0 + later
        session.turn({"count": count})
    assert len(session.runs) == 1 and waits == pytest.approx([REST - 0.01])
    session.begin()  # as the timer does
    assert [run.config.count for run in session.runs] == [1, 4]
    monkeypatch.undo()


def test_the_present_config_again_starts_nothing(session):
    session.become(TOY.configured({}))
    assert session.runs == []
    session.become(TOY.configured({"count": 3}))
    assert session.settle(60).config.count == 3


def test_a_page_shows_knobs_turned_in_code_and_hears_of_every_run_but_the_first(session):
    panel, heard = StudyPanel(TOY, session), []
    panel.on_turned = heard.append
    session.begin().wait(300)
    panel.stage.tick()
    assert heard == [] and panel.knobs.panel.shown["count"]["field"] == "5"
    session.turn({"count": 9})  # as code in a notebook does
    session.settle(60)
    panel.stage.watch(panel.look)  # whatever was looked at a moment ago
    panel.stage.tick()  # the run is seen first,
    panel.stage.tick()  # then what the knobs stand at
    assert panel.knobs.panel.shown["count"]["field"] == "9"
    assert panel.stage.tracks[0].run is session.run
    assert [config.count for config in heard] == [9]
    panel.turn({"count": 7})
    assert panel.knobs.panel.shown["count"]["field"] == "7" and session.config.count == 7
    panel.close()


def test_a_new_run_stops_the_one_before(session):
    session.turn({"count": 1_000_000, "wait": 0.001})
    first = session.begin()
    session.turn({"count": 2, "wait": 0.0})
    session.settle(60)
    first.thread.join(60)
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
    until = time.monotonic() + 300
    while session.run is None and time.monotonic() < until:
        time.sleep(0.01)
    assert session.run is not None


def test_the_oldest_runs_go_first(session):
    for seed in range(KEEP + 3):
        session.seed = seed
        session.begin().wait(300)
    assert len(session.runs) == KEEP
    assert session.runs[0].log.opened.seed == 3


def test_a_run_can_start_paused_and_be_taken_step_by_step(session):
    run = session.begin(paused=True)
    run.wait(0.2)
    assert run.state == "paused"
    assert not [event for event in run.log if isinstance(event, Span)]
    run.resume()
    run.wait(300)
    assert run.state == "closed"


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


def test_an_idle_run_is_stopped_and_said_so(session):
    session.turn({"count": 1_000_000, "wait": 0.001})
    run = session.begin()
    session.tend(session.turned + IDLE - 1)
    assert not session.said and run.state != "closed"
    session.tend(session.turned + IDLE + 1)
    run.thread.join(30)
    assert run.log.closed.reason == "stopped"
    assert "30 minutes" in session.said and "Turn a knob" in session.said
    session.turn({"count": 2, "wait": 0.0})
    session.settle(30)
    assert session.said == "" and session.run.log.closed.reason == "finished"
    session.tend(session.turned + 2 * IDLE)
    assert session.said == "", "a run that is over is nobody's burden"


def test_a_run_that_grows_too_long_is_stopped(session, monkeypatch):
    monkeypatch.setattr(sessions, "EVENTS", 20)
    session.turn({"count": 1_000_000, "wait": 0.001})
    run = session.begin()
    until = time.monotonic() + 300
    while not session.said and time.monotonic() < until:
        session.tend()
        time.sleep(0.01)
    run.thread.join(30)
    assert run.log.closed.reason == "stopped" and "at 20 events" in session.said


def test_the_page_says_why_a_run_was_stopped(session):
    panel = StudyPanel(TOY, session)
    session.turn({"count": 1_000_000, "wait": 0.001})
    run = session.begin()
    panel.look()
    assert not panel.fault.visible
    session.tend(session.turned + IDLE + 1)
    run.thread.join(30)
    panel.look()
    assert panel.fault.visible and "no knob was turned" in panel.fault.object
    panel.close()
