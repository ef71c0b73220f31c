"""Power of a row: what is drawn by phase, caps by threshold, the brake; nothing where unasked."""

import numpy as np
import pytest
from msgspec.structs import replace

from engine.core.config import update
from engine.core.errors import BadInput
from engine.core.events import Blob, Level, Mark
from engine.core.run import Run
from engine.fleet import timeline
from engine.fleet.measure import columns, served
from engine.fleet.power.polca import Polca
from engine.fleet.power.power import FULL, Clocks
from engine.fleet.power_row import POWER
from engine.fleet.run import run
from engine.hardware import device
from tests.engine.fleet.test_fleet import SMALL

ROW = update(SMALL, {"tokens": False, "power.budget": 3.0, "power.every": 0.05})

LOCKED = {"kind": "locked", "clock": 0.5, "budget": 3.0, "every": 0.05}


def play(changes: dict):
    config = update(ROW, changes)
    return config, Run.execute(run, config).log


def test_a_row_that_is_never_short_serves_as_one_that_is_not_watched():
    (_, watched), (_, alone) = play({}), play({"power.budget": 0.0})
    for name, column in columns(watched).items():
        np.testing.assert_array_equal(column, columns(alone)[name])
    assert POWER not in alone.blobs


def test_its_power_lies_between_idle_and_the_sheets():
    _, log = play({})
    watts, most = log.blobs[POWER][1], 3 * (device("h100-sxm").tdp or 0)
    assert 0.2 * most * (1 - 1e-9) <= watts.min() and watts.max() <= most
    assert watts.max() > 0.5 * most


def test_a_lower_clock_draws_less_and_slows_prompts_more_than_answers():
    (config, free), (_, locked) = play({}), play({"power": LOCKED})
    before, after = served(free, config), served(locked, config)
    assert after.ttft.mean / before.ttft.mean > after.tpot.p50 / before.tpot.p50 >= 1.0
    assert locked.blobs[POWER][1].max() < free.blobs[POWER][1].max()


def test_above_its_budget_every_clock_is_cut():
    slow = {"power.budget": 1.0, "power.brake_after": 0.05, "power.brake_for": 0.2}
    (config, free), (_, braked) = play({}), play(slow)
    assert any(mark.name == "brake" for mark in braked.of(Mark))
    assert served(braked, config).end_to_end.mean > served(free, config).end_to_end.mean
    assert served(braked, config).finished == served(free, config).finished


def test_two_thresholds_go_step_by_step_and_back():
    rule = Polca()
    low, lowest = rule.low_clock, rule.lowest_clock
    asked, seen = FULL, []
    for share in (0.7, 0.82, 0.9, 0.9, 0.85, 0.83, 0.78, 0.7):
        asked = rule.clocks(share, asked)
        seen.append(asked)
    assert seen == [
        FULL, Clocks(low, 1.0), Clocks(lowest, 1.0), Clocks(lowest, rule.high_clock),
        Clocks(lowest, rule.high_clock), Clocks(low, 1.0), Clocks(low, 1.0), FULL,
    ]  # fmt: skip


def test_a_budget_below_what_idle_devices_draw_is_refused():
    """No brake helps there: the run would never end."""
    with pytest.raises(BadInput, match="power.budget: .* idle"):
        play({"power.budget": 0.1})


IDLE = {"engine.workload.rate": 0.1, "engine.workload.count": 12}  # 10 s apart, in the mean
READERS = {
    "polca": {"power": {"kind": "polca", "budget": 1.0, "every": 0.05, "delay": 0.1}},
    "scaling": {
        "power.budget": 0.0,
        "scaling": {"kind": "by_queue", "every": 0.05, "startup": 0.1, "cooldown": 0.2},
    },
}


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("changes", READERS.values(), ids=READERS)
def test_readings_in_which_nothing_happens_are_skipped_and_nothing_else_changes(
    changes, seed, monkeypatch
):
    def seen(still):
        monkeypatch.setattr(timeline, "STILL", still)
        log = play({**IDLE, **changes, "engine.seed": seed})[1]
        told = [each for each in log if not isinstance(each, Level | Blob)]
        return log, [replace(event, time=0.0) for event in told], [event.time for event in told]

    (every, told, times), (some, as_told, at_times) = seen(10**9), seen(5)
    assert told == as_told
    np.testing.assert_allclose(at_times, times, rtol=1e-12)
    for name, column in columns(every).items():
        np.testing.assert_allclose(columns(some)[name], column, rtol=1e-12)
    assert len(some.of(Level)) < len(every.of(Level))
    last = {(event.lane, event.name): event.value for event in every.of(Level)}
    assert last == pytest.approx({(e.lane, e.name): e.value for e in some.of(Level)}, rel=1e-9)


@pytest.mark.parametrize("changes", READERS.values(), ids=READERS)
def test_what_nothing_happens_in_costs_alike_however_long_it_lasts(changes):
    logs = [play({**IDLE, **changes, "engine.workload.rate": rate})[1] for rate in (1e-3, 1e-9)]
    assert len(logs[1]) < 1.5 * len(logs[0]) < 30_000


def test_a_device_without_a_sheet_is_named():
    with pytest.raises(BadInput, match="no data sheet"):
        play({"engine.executor.device": "this-machine"})
