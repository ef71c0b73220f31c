"""Plots: what a driver draws is what a reader finds, and what is no curve is refused."""

import numpy as np
import pytest

from engine.core.clock import VirtualClock
from engine.core.config import Config
from engine.core.errors import BadInput
from engine.core.log import Log
from engine.core.plot import Plot
from engine.core.run import Live

PLOT = Plot("Speed", "rows", "rate (GB/s)", log_x=True)


def test_points_come_back_as_columns_under_the_plot_s_name():
    log = Log()
    live = Live(log)
    live.open(Config(), VirtualClock(), plots=[PLOT])
    live.curve(0.0, PLOT, "ours", [(1, 2.0), (2, 3.0), (4, 5.0)])
    live.curve(
        0.0, PLOT, "ours", np.array([[1.0, 2.0], [3.0, 4.0], [2.5, 3.5], [3.5, 4.5]]), modelled=True
    )
    assert PLOT.read(log, "ours").tolist() == [[1.0, 2.0, 4.0], [2.0, 3.0, 5.0]]
    assert PLOT.read(log, "ours (modelled)").shape == (4, 2)
    header = log.opened
    assert header is not None
    assert header.facts["curves"]["Speed"]["log_x"] is True and header.machine


def test_a_later_series_of_that_name_replaces_it():
    live = Live(Log())
    live.curve(0.0, PLOT, "ours", [(1, 2.0)])
    live.curve(0.0, PLOT, "ours", [(1, 3.0)])
    assert PLOT.read(live.log, "ours").tolist() == [[1.0], [3.0]]


def test_what_is_no_curve_and_what_is_not_there_are_refused_in_a_line():
    live = Live(Log())
    with pytest.raises(BadInput, match="2 or 4 columns"):
        live.curve(0.0, PLOT, "ours", [(1, 2, 3)])
    with pytest.raises(BadInput, match="'theirs' of 'Speed': not in this run"):
        PLOT.read(live.log, "theirs")
