"""What the progress bar says of long work."""

from time import perf_counter

import pytest

from engine.core.log import Log
from engine.core.run import Live, Run
from widgets.stage.progress import PATIENCE, work_of

LONG_AGO = perf_counter() - 10 * PATIENCE


def reporting(done, total):
    run = Run(Log(), live=Live(Log()))
    run.live.report("training", 0, total)
    run.live.progress.since -= 30
    run.live.report("training", done, total)
    return run


def test_it_says_how_much_of_how_much_and_how_long_still():
    said = work_of(reporting(25, 100), LONG_AGO, [])
    assert said == {"what": "training", "share": 0.25, "words": "25 of 100 · 1.5 min left"}


def test_where_nobody_can_say_how_much_there_is_it_says_how_long_it_has_been():
    assert work_of(reporting(0, 0), LONG_AGO, []) == {
        "what": "training", "share": 0.0, "words": "30 s",
    }  # fmt: skip


def test_it_is_silent_about_short_work_and_none():
    assert work_of(reporting(25, 100), perf_counter(), []) == {}
    assert work_of(None, LONG_AGO, []) == {}


@pytest.mark.parametrize(
    ("compiles", "what"),
    [(True, "Compiling for this machine, once"), (False, "Loading compiled kernels")],
)
def test_it_says_that_kernels_are_compiled_or_loaded_which_no_clock_counts(compiles, what):
    run = reporting(25, 100)
    run.live.aside.state = (0.0, perf_counter() - 30)
    run.live.aside.compiles = compiles
    assert work_of(run, LONG_AGO, []) == {"what": what, "share": 0.0, "words": "30 s"}
