"""Every view, found by folder: its fold is pure, stands at any moment and gives plain frames."""

import inspect

import numpy as np
import pytest

from engine.core.config import update
from engine.core.log import Log
from engine.core.run import Run
from engine.inference.config import InferenceConfig
from engine.inference.run import run
from widgets.fold import History
from widgets.view import View, views

PLAIN = (str, int, float, bool, type(None), np.ndarray, np.generic)


@pytest.fixture(scope="module")
def log() -> Log:
    """A modelled run in scarce memory: pages are shared, evicted, swapped and preempted."""
    changes = {
        "executor": "modelled",
        "workload": "shared_prefix",
        "workload.groups": 3,
        "workload.per_group": 6,
        "workload.prefix": {"median": 40},
        "workload.suffix": {"median": 12},
        "workload.output": {"median": 24},
        "pages": 24,
        "host_pages": 24,
        "preemption": "swap",
        "max_running": 12,
    }
    return Run.execute(run, update(InferenceConfig(), changes)).log


def fold(view: View, log: Log):
    return view.fold(log.blobs) if inspect.signature(view.fold).parameters else view.fold()


def plain(value: object) -> bool:
    if isinstance(value, dict):
        return all(isinstance(k, str) and plain(v) for k, v in value.items())
    if isinstance(value, (list, tuple)):
        return all(plain(v) for v in value)
    return isinstance(value, PLAIN)


def same(one: object, other: object) -> bool:
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same(v, other[k]) for k, v in one.items())
    if isinstance(one, np.ndarray):
        return np.array_equal(one, other, equal_nan=one.dtype.kind == "f")
    if isinstance(one, (list, tuple)):
        return len(one) == len(other) and all(map(same, one, other))
    return bool(one == other) or (one != one and other != other)


@pytest.mark.parametrize("view", views().values(), ids=lambda v: v.name)
def test_frames_are_plain_from_the_first_event_to_the_last(view, log):
    state = fold(view, log)
    assert plain(state.frame())
    for event in log:
        state.add(event)
    assert plain(state.frame())


@pytest.mark.parametrize("view", views().values(), ids=lambda v: v.name)
def test_scrubbing_back_gives_what_folding_to_there_gives(view, log):
    history = History(log, fold(view, log))
    history.latest()
    for share in (0.7, 0.2, 0.9, 0.0, 0.5):
        moment = share * log.duration
        fresh = fold(view, log)
        for event in log:
            if event.time <= moment:
                fresh.add(event)
        assert same(history.at(moment).frame(), fresh.frame())


@pytest.mark.parametrize("view", views().values(), ids=lambda v: v.name)
def test_a_copy_of_a_state_stands_alone(view, log):
    state = fold(view, log)
    half = len(log) // 2
    for event in log[:half]:
        state.add(event)
    kept = state.copy()
    before = kept.frame()
    for event in log[half:]:
        state.add(event)
    assert same(kept.frame(), before)


@pytest.mark.parametrize("view", views().values(), ids=lambda v: v.name)
def test_a_view_asks_a_question(view):
    assert view.question.endswith("?") and view.name in views()
