"""The cursor and the bar: recorded runs move the cursor, live ones obey."""

import pytest

from engine.core.clock import VirtualClock
from engine.core.config import Config
from engine.core.events import Closed, Opened
from engine.core.log import Log
from engine.core.run import Live, Run
from widgets.stage.transport import SPEEDS, Cursor, Transport, stepped

STEPS = [0.1, 0.2, 0.2, 0.5]


def recorded(duration=1.0):
    return Run(Log([Opened(0.0, {}), Closed(duration, "finished")]))


def bar(run, duration=1.0):
    cursor = Cursor(duration=duration)
    transport = Transport(cursor, lambda: STEPS)
    transport.attach(run)
    return transport


class Held:
    """A live run that is never driven: what the bar asked of it is in its live half."""

    def __new__(cls):
        log = Log()
        live = Live(log)
        live.open(Config(), VirtualClock())
        return Run(log, Config(), live)


@pytest.mark.parametrize(
    ("now", "by", "expected"),
    [(0.0, 1, 0.1), (0.1, 1, 0.2), (0.2, 1, 0.5), (0.5, 1, 1.0), (0.0, 3, 0.2), (0.05, -1, 0.0),
     (0.5, -1, 0.2), (0.2, -1, 0.1), (1.0, -1, 0.5), (1.0, -9, 0.0)],
)  # fmt: skip
def test_a_step_goes_to_the_next_or_last_end_of_a_scheduler_step(now, by, expected):
    assert stepped(STEPS, now, by, 1.0) == expected


def test_a_cursor_that_follows_stands_at_the_newest_moment():
    cursor = Cursor(duration=2.0)
    assert cursor.now == 2.0
    cursor.duration = 3.0
    assert cursor.now == 3.0
    cursor.seek(9.0)
    assert (cursor.now, cursor.follow) == (3.0, False)


def test_a_cursor_that_rests_follows_the_next_run():
    cursor = Cursor(duration=2.0)
    cursor.rest(0.5)
    assert (cursor.now, cursor.playing) == (0.5, False)
    cursor.open(3.0)
    assert cursor.follow and cursor.now == 3.0


def test_playing_moves_by_the_speed_and_stops_at_the_end():
    cursor = Cursor(duration=2.0, speed=0.5)
    cursor.play()
    cursor.tick(1.0)
    assert (cursor.time, cursor.playing) == (0.5, True)
    cursor.tick(10.0)
    assert (cursor.time, cursor.playing) == (2.0, False)
    cursor.play()
    assert cursor.time == 0.0


@pytest.mark.parametrize("duration", [1e-6, 0.076, 1.3, 4000.0])
def test_a_fitting_speed_shows_the_run_in_about_a_dozen_seconds(duration):
    cursor = Cursor(duration=duration)
    cursor.fit()
    assert cursor.speed in SPEEDS
    if duration > 0.01:
        assert 3 < duration / cursor.speed < 40


def test_the_controls_of_a_recorded_run_move_the_cursor():
    transport = bar(recorded())
    transport.told({"do": "seek", "time": 0.3})
    assert transport.cursor.now == 0.3
    transport.told({"do": "step", "by": 1})
    assert transport.cursor.now == 0.5
    transport.told({"do": "toggle"})
    assert transport.cursor.playing
    transport.told({"do": "follow"})
    assert transport.cursor.now == 1.0 and not transport.cursor.playing
    assert transport.bar.live is False


def test_the_controls_of_a_live_run_act_on_it():
    run = Held()
    transport = bar(run)
    assert transport.bar.live and not transport.bar.paused
    transport.told({"do": "toggle"})
    assert run.state == "paused" and transport.bar.paused
    transport.told({"do": "step", "by": 3})
    assert run.live._steps == 3
    transport.told({"do": "toggle"})
    assert run.state == "running"
    transport.told({"do": "stop"})
    assert run.live._stop


def test_stepping_back_in_a_live_run_leaves_the_run_alone():
    run = Held()
    transport = bar(run)
    transport.told({"do": "step", "by": -1})
    assert run.state == "running" and transport.cursor.now == 0.5
    transport.told({"do": "toggle"})
    assert run.state == "running" and transport.cursor.playing


@pytest.mark.parametrize(
    "command",
    [{}, {"do": "nothing"}, {"do": "seek", "time": "x"}, {"do": "seek", "time": float("nan")},
     {"do": "speed", "speed": -1}, {"do": "speed", "speed": float("inf")}],
)  # fmt: skip
def test_a_command_that_makes_no_sense_is_ignored(command):
    transport = bar(recorded())
    before = transport.cursor.param.values()
    transport.told(command)
    assert transport.cursor.param.values() == before
