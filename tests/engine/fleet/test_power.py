"""Power of a row: what is drawn by phase, caps by threshold, the brake; nothing where unasked."""

import numpy as np
import pytest

from engine.core.config import update
from engine.core.errors import BadInput
from engine.core.events import Mark
from engine.core.run import Run
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


def test_a_device_without_a_sheet_is_named():
    with pytest.raises(BadInput, match="no data sheet"):
        play({"engine.executor.device": "this-machine"})
