"""Runs: a driver fills the log; a person pauses, steps, stops and tells."""

import subprocess
import sys
import time

import pytest

from engine.core.clock import VirtualClock, WallClock
from engine.core.config import Config, knob
from engine.core.errors import BadInput
from engine.core.events import Closed, Level, Opened, Told
from engine.core.run import Run


class Counting(Config):
    steps: int = knob(5, "how far to count", low=1, high=1_000_000)
    fails: str = knob("", "how to fail")


def count(config, live):
    clock = VirtualClock()
    live.open(config, clock, lanes=["a"])
    for step in range(config.steps):
        for command in live.poll(clock.now()):
            live.emit(Level(clock.now(), "a", "told", command["value"]))
        clock.wait_until(step + 1.0)
        live.emit(Level(clock.now(), "a", "count", step))
        live.report("counting", step + 1, config.steps)
    if config.fails == "input":
        raise BadInput("file x: bad; mend it")
    if config.fails:
        raise RuntimeError("broken")


def until(condition, seconds=300.0):
    end = time.monotonic() + seconds
    while not condition() and time.monotonic() < end:
        time.sleep(0.002)
    assert condition()


def test_a_run_opens_counts_and_closes():
    run = Run.execute(count, Counting(steps=3), seed=7, study="counting")
    opened, closed = run.log.opened, run.log.closed
    assert isinstance(opened, Opened) and opened.seed == 7 and opened.clock == "virtual"
    assert opened.config == {"steps": 3, "fails": ""} and opened.facts == {"lanes": ["a"]}
    assert closed == Closed(3.0, "finished") and run.state == "closed"
    assert [level.value for level in run.log.of(Level)] == [0, 1, 2]


def test_a_paused_run_takes_exactly_the_steps_it_is_given():
    run = Run(*_parts(count, Counting(steps=1_000_000)))
    run.pause()
    _start(run)
    until(lambda: len(run.log) == 1)
    run.step(3)
    until(lambda: len(run.log.of(Level)) == 3)
    time.sleep(0.15)
    assert len(run.log.of(Level)) == 3 and run.state == "paused"
    run.stop()
    run.wait(300)
    assert run.log.closed.reason == "stopped"


def test_what_a_person_says_is_in_the_log():
    run = Run(*_parts(count, Counting(steps=2)))
    run.tell(value=42)
    _start(run)
    run.wait(300)
    assert [t.command for t in run.log.of(Told)] == [{"value": 42}]
    assert 42 in [level.value for level in run.log.of(Level)]


@pytest.mark.parametrize(("fails", "error"), [("input", BadInput), ("bug", RuntimeError)])
def test_a_failed_driver_closes_its_log_and_raises_where_awaited(fails, error):
    run = Run.start(count, Counting(fails=fails))
    with pytest.raises(error):
        run.wait(300)
    assert run.state == "closed" and run.log.closed.reason not in ("", "finished")


def test_a_process_that_ends_lets_its_runs_come_to_their_next_step():
    program = """
import atexit
from engine.core.run import Run
from tests.engine.core.test_run import Counting, count
atexit.register(lambda: print(run.log.closed))  # registered first, so called last
run = Run.start(count, Counting(steps=1_000_000))
while len(run.log) < 3: pass
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0 and "stopped" in done.stdout


def test_events_are_in_time_order():
    times = [event.time for event in Run.execute(count, Counting(steps=50)).log]
    assert times == sorted(times)


def test_clocks_wait_in_their_own_time():
    virtual, wall = VirtualClock(), WallClock()
    virtual.wait_until(1e9)
    assert virtual.now() == 1e9
    wall.wait_until(wall.now() + 0.01)
    assert wall.now() >= 0.01
    virtual.wait_until(5.0)
    assert virtual.now() == 1e9


def _parts(driver, config):
    from engine.core.log import Log
    from engine.core.run import Live

    log = Log()
    return log, config, Live(log)


def _start(run):
    import threading

    run.thread = threading.Thread(target=run._drive, args=(count,), daemon=True)
    run.thread.start()
