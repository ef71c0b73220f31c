"""Folds of levels and latencies, their pictures, and how little a drawing sends."""

import numpy as np
import pytest

from engine.core.events import Branch, Closed, Level, Opened, Token
from engine.core.measure import serving
from tests.widgets.made_runs import serving as made_serving
from widgets.canvas.packing import unpack
from widgets.chart.picture import Line, Picture, Plot, Scales, ceiling, extremes, steps
from widgets.chart.plots import frame_of
from widgets.views.latency.draw import LatencyDrawing
from widgets.views.latency.fold import KINDS, LatencyFold
from widgets.views.levels import VIEW as LEVELS
from widgets.views.levels.fold import LevelsFold
from widgets.views.levels.picture import picture, prepare


def folded(fold, events):
    for event in events:
        fold.add(event)
    return fold.frame()


def levels(count, clock="wall"):
    header = Opened(0.0, {}, clock=clock, facts={"pages": 50})
    made = [Level(i * 0.01, "engine", "running", float(i % 7)) for i in range(count)]
    return [header, *made, Level(count * 0.01, "engine", "pages_used", 40.0)]


def test_levels_are_kept_by_name_and_lane_in_order():
    frame = folded(LevelsFold(), [
        Level(0.0, "a", "running", 1.0), Level(0.5, "b", "running", 2.0),
        Level(1.0, "a", "running", 3.0),
    ])  # fmt: skip
    times, values = frame["levels"]["running"]["a"]
    assert times.tolist() == [0.0, 1.0] and values.tolist() == [1.0, 3.0]
    assert frame["levels"]["running"]["b"][1].tolist() == [2.0]
    assert frame["stop"] == 1.0


@pytest.mark.parametrize("fold", [LevelsFold, LatencyFold])
def test_a_copy_of_a_fold_stands_alone(fold):
    log = made_serving(requests=6)
    whole, half = fold(), fold()
    for event in log.events[: len(log) // 2]:
        half.add(event)
    kept = half.copy()
    for event in log.events[len(log) // 2 :]:
        half.add(event)
    for event in log.events[len(log) // 2 :]:
        kept.add(event)
    np.testing.assert_equal(kept.frame(), folded(whole, log))
    np.testing.assert_equal(half.frame(), kept.frame())


def test_levels_of_another_run_are_asked_about_in_general_and_named_by_lane():
    header = Opened(0.0, {}, clock="wall", facts={})
    errors = [Level(0.1, name, "output error", 2e-7) for name in ("recurrent", "parallel")]
    later = Level(1.0, "parallel", "output error", 1e-7)
    drawn = picture(prepare(folded(LevelsFold(), [header, *errors, later])), 0.1, "")
    assert "engine" not in drawn.question and drawn.question.endswith("?")
    (plot,) = drawn.plots
    assert plot.title == "Output error"
    assert [line.name for line in plot.lines] == ["recurrent", "parallel"]
    assert picture(prepare(folded(LevelsFold(), levels(3))), 0.0, "").question == ""


def test_without_levels_a_view_says_that_the_run_goes_on_or_has_none():
    def said(*events):
        return picture(prepare(folded(LevelsFold(), events)), 0.0, "").empty

    assert "Start a run" in said()
    assert said(Opened(0.0, {})) == "No levels yet: the run goes on."
    assert said(Opened(0.0, {}), Closed(1.0, "finished")) == "No levels in this run."


def test_what_is_said_at_the_end_alone_is_told_in_its_unit():
    said = [Level(0.1, "rank 0", "loss", 3.0), Level(1.0, "rank 0", "peak bytes", 2.0**21)]
    loss, peak = picture(prepare(folded(LevelsFold(), said)), 1.0, "").plots
    assert loss.lines[0].name == "loss" and peak.y_unit == "B"
    assert peak.lines[0].name == "peak bytes  2 MiB"


def test_where_a_thread_sees_a_block_is_no_quantity_to_plot():
    events = [Level(1.0, "a", "sees/bob/1", 12.0), Level(1.0, "a", "error", 1.0)]
    shown = picture(prepare(folded(LevelsFold(), events)), 1.0, "")
    assert [plot.title for plot in shown.plots] == ["Error"]


def test_a_lane_keeps_its_hue_where_another_says_nothing():
    said = [("error", "int8"), ("error", "e4m3"), ("gates", "e4m3")]
    events = [Level(1.0, lane, name, 1.0) for name, lane in said]
    error, gates = picture(prepare(folded(LevelsFold(), events)), 0.0, "").plots
    assert gates.lines[0].hue == error.lines[1].hue != error.lines[0].hue


def test_memory_that_ranks_hold_leaves_the_room_to_other_quantities():
    names = ("memory/weights", "memory/gradients", "memory/optimiser", "loss", "rate")
    events = [Level(1.0, "rank 0", name, 1.0) for name in names]
    plots = picture(prepare(folded(LevelsFold(), events)), 0.0, "").plots
    assert [plot.title for plot in plots] == ["Loss", "Rate", "Memory, weights"]


def test_the_figures_are_the_levels_at_the_cursor():
    ready = prepare(folded(LevelsFold(), levels(20)))
    shown = {what: text for text, what in picture(ready, 0.055, "").figures}
    assert shown["running, 6 at most"] == "5"
    at_end = {w: t for t, w in picture(ready, 9.0, "").figures}
    assert at_end["pages used, 80 % at most"] == "80 %"
    # The words stay as the cursor moves, or what stands under them would move with it.
    assert list(shown) == list(at_end)


def lines(frame, plot=0):
    """(x, y) of each line of a plot as the browser has them."""
    parts = [
        slice(line["first"], line["first"] + line["count"])
        for line in frame["plots"][plot]["lines"]
    ]
    return [(frame["x"][part], frame["y"][part]) for part in parts]


def test_a_long_line_keeps_every_extreme_and_says_what_it_left_out():
    events = levels(50_000)
    events[25_000] = Level(events[25_000].time, "engine", "running", 99.0)
    frame = frame_of(picture(prepare(folded(LevelsFold(), events)), 0.0, ""), {})
    x, y = lines(frame)[0]
    assert len(x) <= 2000 and y.max() == 99.0
    assert "of 50 k points" in frame["note"]


def test_a_closer_look_has_every_point_that_it_can_show():
    events = levels(50_000)
    shown = picture(prepare(folded(LevelsFold(), events)), 0.0, "")
    frame = frame_of(shown, {"pixels": 600, "start": 100.0, "stop": 101.0})
    x, _ = lines(frame)[0]
    assert np.count_nonzero((x >= 100.0) & (x <= 101.0)) in (100, 101)
    assert len(x) <= 310 and frame["note"] == ""


@pytest.mark.parametrize("window", [
    {"pixels": "wide"}, {"pixels": -3, "start": 2.0, "stop": 1.0}, {"start": None, "stop": [1]},
])  # fmt: skip
def test_a_window_that_makes_no_sense_asks_for_all(window):
    shown = picture(prepare(folded(LevelsFold(), levels(50))), 0.0, "")
    np.testing.assert_equal(frame_of(shown, window), frame_of(shown, {}))


def test_the_sum_of_many_lanes_is_what_they_hold_together():
    events = [Level(0.1 * lane, f"engine{lane}", "running", 2.0) for lane in range(9)]
    shown = picture(prepare(folded(LevelsFold(), events)), 1.0, "")
    assert [line.name for line in shown.plots[0].lines if len(line.x)] == ["running"]
    assert shown.plots[0].lines[0].y.tolist()[-1] == 18.0


def test_modelled_levels_are_dashed_and_real_ones_solid():
    real = picture(prepare(folded(LevelsFold(), levels(5))), 0.0, "")
    modelled = picture(prepare(folded(LevelsFold(), levels(5, "virtual"))), 0.0, "")
    assert not real.plots[0].lines[0].modelled and modelled.plots[0].lines[0].modelled
    assert frame_of(modelled, {})["modelled"] and not frame_of(real, {})["modelled"]


def test_latencies_are_those_that_the_measures_define():
    log = made_serving(requests=12, pages=64)
    frame, truth = folded(LatencyFold(), log), serving(log)
    for kind in KINDS:
        values = frame[kind][0]
        expected = getattr(truth, kind)
        assert len(values) == expected.count
        if expected.count:
            assert np.quantile(values, 0.9) == pytest.approx(expected.p90)


def test_only_latencies_known_at_the_cursor_are_drawn():
    events = [
        Opened(0.0, {}), Branch(0.0, "r0", "", "queued"), Branch(0.0, "r1", "", "queued"),
        Token(0.1, "r0", "a"), Token(0.2, "r0", "b"), Branch(0.2, "r0", "", "finished"),
        Token(0.4, "r1", "a"), Branch(0.4, "r1", "", "finished"),
    ]  # fmt: skip
    drawing = LatencyDrawing()
    frame = folded(LatencyFold(), events)
    drawing.show(frame, 0.15)
    first, per_token, whole = drawing.shown.plots
    assert first.readings[0].value == "100 ms" and len(per_token.lines[0].x) == 0
    drawing.show(frame, 0.4)
    assert drawing.shown.plots[0].readings[0].value == "250 ms"
    assert drawing.shown.figures[-1] == ("2", "finished, 2 in all")
    assert first.right == drawing.shown.plots[0].right  # the axes do not jump while time passes


def test_a_chosen_request_is_marked_on_every_curve_it_is_on():
    log = made_serving(requests=6)
    drawing = LatencyDrawing()
    drawing.show(folded(LatencyFold(), log), log.duration)
    drawing.choose("r1")
    assert [dot.owner for plot in drawing.shown.plots for dot in plot.dots] == ["r1"] * 3
    drawing.choose("")
    assert not any(plot.dots for plot in drawing.shown.plots)


class Host:
    """Stands for a browser: takes what is sent."""

    def __init__(self):
        self.sent = []

    def send(self, **changes):
        self.sent.append(changes)


def test_an_unchanged_picture_sends_no_frame_and_a_longer_one_shows_its_tail():
    drawing, host = LEVELS.draw(), Host()
    drawing._hosts.append(host)
    drawing.show(folded(LevelsFold(), levels(50)), 0.0)
    drawing.show(folded(LevelsFold(), levels(50)), 0.205)
    assert [set(changes) for changes in host.sent] == [
        {"frame", "figures"}, {"cursor", "figures"},
    ]  # fmt: skip
    drawing.show(folded(LevelsFold(), levels(55)), 0.205)
    assert set(host.sent[-1]) == {"frame"}
    expected = steps(*folded(LevelsFold(), levels(55))["levels"]["running"]["engine"], 0.55)
    x, y = lines(unpack(host.sent[-1]["frame"]))[0]
    np.testing.assert_array_equal(x, expected.x)
    np.testing.assert_array_equal(y, expected.y)


def test_the_name_of_a_level_goes_to_the_browser_as_it_is():
    drawing = LEVELS.draw()
    name = "<img src=x onerror=alert(1)>@y"
    drawing.show(
        folded(LevelsFold(), [Level(float(i), "engine", name, 1.0 + i) for i in range(3)]), 0.0
    )
    assert unpack(drawing._state["frame"])["plots"][0]["lines"][0]["name"] == name


def test_compared_drawings_share_the_ends_of_their_axes():
    scales, drawings = Scales(), [LEVELS.draw(), LEVELS.draw()]
    frames = [folded(LevelsFold(), levels(count)) for count in (20, 60)]
    for _ in range(2):  # the second time each knows the other's
        for drawing, frame in zip(drawings, frames, strict=True):
            drawing.scales = scales
            drawing.show(frame, 0.1)
    first, second = (unpack(drawing._state["frame"])["plots"] for drawing in drawings)
    assert [(p["right"], p["top"]) for p in first] == [(p["right"], p["top"]) for p in second]
    assert first[0]["right"] == 0.6


def test_points_whose_owners_are_known_carry_them():
    line = Line("a", np.array([0.0, 1.0, 2.0]), np.array([0.0, 0.5, 1.0]))
    plots = (Plot("a", (line,), timed=False, owners=("", "r1", "r7")),) * 2
    frame = frame_of(Picture(plots), {})
    for plot in frame["plots"]:
        places = frame["owner"][plot["owner_first"] : plot["owner_first"] + plot["owner_count"]]
        assert [frame["names"][place] for place in places] == ["", "r1", "r7"]


def test_an_empty_log_says_what_to_do():
    assert "Start a run" in picture(prepare(LevelsFold().frame()), 0.0, "").empty
    drawing = LatencyDrawing()
    drawing.show(LatencyFold().frame(), 0.0)
    assert "first token" in drawing.shown.empty


@pytest.mark.parametrize("value", [0.3, 1.0, 7.2, 99.0, 1e-7, 12345.0])
def test_an_axis_ends_at_a_round_number_that_holds_its_values(value):
    assert value <= ceiling(value) * 1.0001 and ceiling(value) <= value * 2
    assert ceiling(37.3 * 2**20, "B") == 40 * 2**20  # round in the unit that it is written in


def test_extremes_keep_both_ends():
    found = extremes(np.sin(np.arange(10_000)), 200)
    assert len(found) <= 200 and found[0] == 0 and found[-1] == 9999


def test_a_chart_of_recent_seconds_sends_no_others():
    frame = folded(LevelsFold(), levels(20_000))
    drawing = LEVELS.draw()
    drawing.show(frame, 200.0)
    whole = unpack(drawing._state["frame"])["x"]
    drawing.recent(10.0)
    drawing.show(dict(frame), 200.0)
    recent = unpack(drawing._state["frame"])["x"]
    assert whole.min() == 0.0 and recent.min() > 170.0  # ten seconds, and as many to spare
    assert recent.max() == whole.max()
