"""Sweeps: a study's run measured over one knob."""

import threading

import numpy as np
import pytest

from engine.core.errors import BadInput
from engine.core.events import Level, Span
from engine.core.plot import Plot
from engine.core.run import Run
from tests.workbench.toy import TOY, Ticks, tick
from workbench.sweep import Sweep, drawing, named

PLOT = Plot("Last value", "ticks", "value")
STEPS = Plot("Steps", "ticks", "steps")


def last(log):
    return [level.value for level in log.of(Level)][-1]


def spans(log):
    return sum(1 for _ in log.of(Span))


UP = Sweep(PLOT, ("count", (1, 2, 4)), last, series={"up": {}, "down": {"order": "down"}})
COUNT = Sweep(STEPS, ("count", (2, 4)), {"steps": spans, "twice": lambda log: 2 * spans(log)},
              bounds={"as asked": lambda x: x})  # fmt: skip


def drawn(*sweeps, driver=tick):
    return Run.execute(drawing(driver, sweeps), Ticks()).log


def test_each_line_has_a_point_at_each_value():
    log = drawn(UP)
    assert PLOT.read(log, "up").tolist() == [[1, 2, 4], [0, 1, 3]]
    assert PLOT.read(log, "down").tolist() == [[1, 2, 4], [1, 1, 1]]
    assert "Last value" in log.opened.facts["curves"]


def test_one_run_serves_every_line_that_asks_for_it():
    runs = []

    def counted(config, live):
        runs.append(config)
        tick(config, live)

    log = drawn(UP, COUNT, driver=counted)
    assert len(runs) == 6  # three up, three down; the second sweep's two are among the first's
    assert STEPS.read(log, "twice").tolist() == [[2, 4], [4, 8]]
    assert STEPS.read(log, "as asked (bound)").tolist() == [[2, 4], [2, 4]]


def test_values_of_problems_and_repeats_are_pooled_into_an_interval():
    right = Sweep(
        PLOT, ("count", (3,)), lambda log: np.array([True, False]),
        repeats=({"order": "up"}, {"order": "down"}),
    )  # fmt: skip
    x, mean, low, high = PLOT.read(drawn(right), "")[:, 0]
    assert (x, mean) == (3, 0.5)
    assert 0.1 < low < 0.2 < 0.8 < high < 0.9


def test_a_point_may_stand_where_the_run_says_and_a_run_may_be_a_line():
    along = Sweep(PLOT, ("count", (1, 2)), last, along=lambda log: 10 * spans(log))
    assert PLOT.read(drawn(along), "").tolist() == [[10, 20], [0, 1]]
    line = Sweep(PLOT, None, lambda log: np.array([[0.0, 1.0], [last(log), 7.0]]))
    assert PLOT.read(drawn(line), "").tolist() == [[0, 1], [4, 7]]


def test_a_knob_may_be_set_by_a_function():
    turned = Sweep(PLOT, (lambda config, value: {"count": 2 * value}, (1, 2)), last)
    assert PLOT.read(drawn(turned), "").tolist() == [[1, 2], [1, 3]]


def test_stopped_it_ends_within_a_point():
    begun = threading.Event()

    def slow(config, live):
        begun.set()
        tick(config, live)

    sweep = Sweep(PLOT, ("count", (100_000,)), last, changes={"wait": 0.01})
    run = Run.start(drawing(slow, [sweep]), Ticks())
    assert begun.wait(300)
    run.stop()
    assert run.wait(300).log.closed.reason == "stopped"
    assert run.live.progress.what == "running every point"


def test_a_title_that_is_none_is_refused():
    assert named([UP, COUNT], "Steps") is COUNT
    with pytest.raises(BadInput, match="sweep 'Step': no such curve"):
        named([UP, COUNT], "Step")
    assert TOY.sweeps == ()
