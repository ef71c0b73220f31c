"""Figures at every moment of a run, as the views of a whole history tell them."""

import numpy as np
import pytest

from engine.core.events import Branch, Closed, Opened, Span, Token
from engine.core.log import Log
from widgets.canvas.running import POINTS, counting, mean, running
from widgets.fold import History
from widgets.view import view
from widgets.views.schedule.busy import Busy


def at(frame, place, time):
    """What the browser says of figure `place` at `time`."""
    times, values = (frame[f"running{place}_{part}"] for part in ("time", "value"))
    before = np.flatnonzero(times <= time)
    return float(values[before[-1]]) if len(before) else 0.0


@pytest.fixture
def served():
    """Two requests, the second queued for a second; three tokens."""
    return Log([
        Opened(0.0, {}), Branch(0.0, "a", state="queued"), Branch(0.0, "a"),
        Branch(1.0, "b", state="queued"), Token(1.0, "a", "x"), Token(1.5, "a", "y"),
        Branch(1.5, "a", state="finished"), Branch(2.0, "b"), Token(3.0, "b", "z"),
        Branch(3.0, "b", state="finished"), Closed(4.0, "finished"),
    ])  # fmt: skip


def test_requests_finished_and_tokens_are_counted_up(served):
    frame = History(served, view("request_lanes").fold()).latest().frame()
    assert [at(frame, 0, time) for time in (1.0, 1.6, 3.5)] == [0, 1, 2]
    assert [at(frame, 1, time) for time in (0.5, 1.2, 3.5)] == [0, 1, 3]
    assert at(frame, 2, 3.5) == 0.5 and at(frame, 2, 1.2) == 0  # b waited a second, a none
    assert frame["running"][0] == {
        "place": 0, "unit": "", "said": "in all", "of": 2, "empty": False,
    }  # fmt: skip
    river = History(served, view("token_river").fold()).latest().frame()
    assert at(river, 0, 1.6) == 2 and at(river, 1, 1.5) == pytest.approx(4.0)


def test_the_idle_share_is_that_up_to_the_moment():
    made = Log([Opened(0.0, {"x": 1}), Span(1.0, "rank 0", "F", 0.0), Span(4.0, "rank 1", "F", 2.0),
                Closed(4.0, "finished")])  # fmt: skip
    frame = History(made, view("schedule").fold()).latest().frame()
    assert at(frame, 1, 1.0) == pytest.approx(0.5, abs=0.01)
    assert at(frame, 1, 2.0) == pytest.approx(0.75, abs=0.01)
    assert at(frame, 1, 4.0) == pytest.approx(1 - 3 / 8)
    assert dict(map(tuple, frame["figures"]))["idle of total"] == "62.5 %"
    busy = Busy()
    for start, stop in ((1.0, 2.0), (3.0, 5.0)):
        busy.add(start, stop)
    assert busy.before(np.array([0.0, 1.5, 2.5, 4.0, 9.0])).tolist() == [0, 0.5, 1, 2, 3]


def test_long_runs_send_few_moments_with_the_last_among_them():
    found = running({2: counting(np.arange(10_000.0)), 3: mean(np.ones(2), np.array([1.0, 3.0]))})
    assert len(found["running2_time"]) <= POINTS
    assert found["running2_value"][-1] == 10_000 and found["running3_value"].tolist() == [1, 2]
