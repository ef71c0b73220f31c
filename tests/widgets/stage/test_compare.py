"""Compared runs: one axis for all, what differs said, texts escaped."""

import pytest

from engine.core.events import Opened
from engine.core.log import Log
from engine.core.run import Run
from tests.widgets.made_runs import serving
from tests.widgets.stage.test_stage import settle
from widgets.stage.compare import Compare
from widgets.stage.figures import compared, differing
from widgets.stage.stage import Stage


def test_compared_runs_share_the_axis_and_say_what_differs():
    first, second = serving(requests=6), serving(seed=3, requests=18)
    made = Compare([Run(first), Run(second)], ["levels", "latency"])
    settle(made.stage)
    longest = max(first.duration, second.duration)
    ends = {feed.drawing.shown.plots[0].right for feed in made.stage.feeds if feed.view.whole}
    levels = [feed for feed in made.stage.feeds if feed.view.name == "levels"]
    assert len({feed.drawing.shown.plots[0].right for feed in levels}) == 1
    assert levels[0].drawing.shown.plots[0].right == pytest.approx(longest)
    assert len(ends) == 2  # the levels' time axis and the latencies' own
    assert made.stage.cursor.duration == longest
    named = dict(differing([first, second]))
    assert named["seed"] == ("0", "3")
    rows = {name: (values, ratios) for name, values, ratios in compared([first, second])}
    assert rows["duration"][1] == (f"{second.duration / first.duration:.3g}×",)
    table = made._table.object
    assert "seed" in table and "<th>B / A</th>" in table


def test_text_of_a_log_is_escaped_in_the_comparison():
    logs = [Log([Opened(0.0, {"name": name})]) for name in ("<script>", "b")]
    made = Compare([Run(log) for log in logs], ["levels"])
    assert "<script>" not in made._table.object and "&lt;script&gt;" in made._table.object


def test_compared_canvas_views_share_the_longest_runs_time_axis():
    short, long = Run(serving(requests=3)), Run(serving(requests=16))
    made = Compare([short, long], ["request_lanes", "page_map"])
    made.stage.tick()
    reach = {feed.drawing._state["reach"] for feed in made.stage.feeds}
    assert reach == {long.log.duration} and long.log.duration > short.log.duration
    alone = Stage(["request_lanes"])
    alone.open(short)
    alone.tick()
    assert alone.feeds[0].drawing._state["reach"] == 0.0


def test_a_page_may_read_what_differs_later_beside_its_loop():
    runs = [Run(serving(requests=6)), Run(serving(seed=3, requests=18))]
    later, now = Compare(runs, ["levels"], at_once=False), Compare(runs, ["levels"])
    assert "Reading what differs" in later._table.object and "B / A" not in later._table.object
    later.read()
    later.dark(True)
    now.dark(True)
    assert later._table.object == now._table.object and "B / A" in now._table.object
