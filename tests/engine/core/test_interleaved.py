"""Curves over one knob whose series are measured in turns, within one run."""

from dataclasses import replace

import pytest

from engine.core.clock import VirtualClock
from engine.core.config import Config
from engine.core.interleaved import Interleaved, measure
from engine.core.plot import Plot
from engine.core.run import Live, Run

SECONDS = Plot("seconds", "length", "seconds (s)")
AHEAD = Plot("ahead", "length", "times as fast (×)")
COST = {"quick": 1.0, "slow": 2.0, "short": 3.0}  # seconds a token


def interleaved(called, rounds=lambda value: 2):
    """Three series over two lengths, one of which takes short ones only."""

    def at(length):
        called.append(f"at {length}")
        names = [name for name in COST if name != "short" or length < 20]
        return {name: lambda name=name: take(name, length) for name in names}

    def take(name, length):
        called.append(name)
        return COST[name] * length

    return Interleaved(
        "measuring", [10, 20], at,
        {
            SECONDS: lambda _, name, found: (min(found[name]), min(found[name]), max(found[name])),
            AHEAD: lambda _, name, found: (
                None if name == "slow" else [min(found["slow"]) / min(found[name])]
            ),
        },
        rounds=rounds,
        bounds={AHEAD: {"even": lambda length: 1.0 if length > 10 else None}},
    )  # fmt: skip


def drive(asked, measured):
    def driver(config, live: Live) -> None:
        live.open(config, VirtualClock(), plots=[SECONDS, AHEAD])
        measured.update(measure(asked, VirtualClock(), live))

    return driver


def test_series_take_turns_and_each_plot_is_drawn_of_what_was_measured():
    called, measured = [], {}
    log = Run.execute(drive(interleaved(called), measured), Config()).log
    turn = ["quick", "slow", "short"]
    assert called == ["at 10", *turn, *turn, "at 20", *turn[:2], *turn[:2]]
    assert measured[20] == {"quick": [20.0, 20.0], "slow": [40.0, 40.0]}
    assert SECONDS.read(log, "slow").tolist() == [[10, 20], [20, 40], [20, 40], [20, 40]]
    assert SECONDS.read(log, "short")[0].tolist() == [10]
    assert AHEAD.series(log) == ["even (bound)", "quick", "short"]
    assert AHEAD.read(log, "quick").tolist() == [[10, 20], [2, 2]]
    assert AHEAD.read(log, "even (bound)").tolist() == [[20], [1]]
    assert next(iter(log.blobs)) == SECONDS.name("quick")  # which plot is shown first


def test_it_is_stopped_between_two_measurements_and_keeps_what_it_drew():
    called, measured, asked = [], {}, None

    def driver(config, live):
        def stop_in_the_second_value(value):
            if value == 20:
                live.stop()
            return 1

        nonlocal asked
        asked = interleaved(called, stop_in_the_second_value)
        drive(asked, measured)(config, live)

    run = Run.start(driver, Config())
    run.thread.join(60)
    assert run.log.closed.reason == "stopped"
    assert called[-1] == "at 20" and measured == {}
    assert SECONDS.read(run.log, "slow")[0].tolist() == [10]
    assert (run.live.progress.what, run.live.progress.done) == ("measuring", 1)


def test_what_is_enough_ends_it_after_its_last_turn():
    called, measured = [], {}
    asked = replace(interleaved(called), enough=lambda _, found: min(found["slow"]) >= 20)
    log = Run.execute(drive(asked, measured), Config()).log
    assert list(measured) == [10] and "at 20" not in called
    assert measured[10]["slow"] == [20.0, 20.0]
    assert log.closed.reason == "finished"


@pytest.mark.parametrize("values", [[], [10]])
def test_no_value_draws_no_series(values):
    asked = Interleaved("nothing", values, lambda value: {}, {SECONDS: lambda *_: None})
    log = Run.execute(drive(asked, {}), Config()).log
    assert SECONDS.series(log) == []
