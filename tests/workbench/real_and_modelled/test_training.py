"""A training step's model: what it counts, what it is fitted to, what it reads of a record."""

import json

import numpy as np
import pytest

from engine.core.config import update
from engine.core.events import Mark
from engine.distributed.record import Record
from engine.hardware import device
from engine.training.parallel.rank_main import STEP
from engine.training.parallel.sizes import Sizes
from workbench.cli.main import main
from workbench.real_and_modelled import training
from workbench.real_and_modelled.training import SCALED, counted, fit, scaled, steps_of, usual


def test_products_go_with_tokens_and_parameters_do_not():
    flops, parameters, passes = counted(usual())
    more, same, alike = counted(scaled(usual(), "tokens", 2.0))
    assert more > 2 * flops and (same, alike) == (parameters, passes)
    sizes = Sizes.model_validate(usual().model.model_dump()).model()
    assert parameters >= sizes.layers * sizes.hidden * sizes.hidden
    half = counted(update(usual(), {"mesh.data": 1}))
    assert half[0] == pytest.approx(2 * flops) and half[1] == parameters


def test_no_size_it_is_calibrated_on_is_the_asked_one():
    asked = counted(usual())
    sizes = [counted(scaled(usual(), knob, by)) for knob, by in SCALED]
    assert all((size != asked).any() for size in sizes)
    assert min(s[0] for s in sizes) < asked[0] < max(s[0] for s in sizes)
    assert min(s[2] for s in sizes) < asked[2] < max(s[2] for s in sizes)


def test_a_fit_finds_what_made_the_times_and_nothing_below_nought():
    sizes = [counted(scaled(usual(), knob, by)) for knob, by in SCALED]
    true = np.array([2e-11, 3e-8, 4e-3])
    found = fit(sizes, [float(size @ true) for size in sizes])
    assert found.each == pytest.approx(true, rel=1e-6) and found.left < 1e-9
    slanted = fit(sizes, [float(size @ np.array([2e-11, 0.0, 0.0])) - 1e-4 for size in sizes])
    assert slanted.each.min() >= 0


def test_steps_are_told_apart_by_config_and_the_first_is_not_counted():
    record = Record(0)
    for begun, first in ((0.0, 5.0), (100.0, 7.0)):
        for at, time in enumerate((begun, begun + first, begun + first + 1, begun + first + 3)):
            record.events.append(Mark(time, "rank 0", STEP, f"step {at}"))
    assert steps_of(record) == [[1.0, 2.0], [1.0, 2.0]]


def test_the_command_trains_for_real(monkeypatch, capsys):
    monkeypatch.setattr(training, "measure", lambda refresh: device("a100-sxm-80gb"))
    words = ["steps=2", "batch=4", "tokens=8", "model.hidden=32", "model.width=32"]
    asked = [part for word in words for part in ("--set", word)]
    assert main(["compare", "--training", "--json", *asked]) == 0
    step = json.loads(capsys.readouterr().out)[0]
    assert step["real"] > 0 and step["modelled"] > 0


def test_one_step_is_too_few(capsys):
    assert main(["compare", "--training", "--set", "steps=1"]) == 2
    assert "steps 1" in capsys.readouterr().err


def test_knobs_of_all_three_are_refused(capsys):
    assert main(["compare", "--all", "--set", "steps=2"]) == 2
    assert "neither --set nor --json" in capsys.readouterr().err
