"""Folds of levels and latencies, their pictures, and how little a drawing sends."""

import numpy as np
import pytest
from bokeh.document import Document
from bokeh.models import HoverTool

from engine.core.events import Branch, Level, Opened, Token
from engine.core.measure import serving
from tests.widgets.made_runs import serving as made_serving
from widgets.latency.draw import LatencyDrawing
from widgets.latency.fold import KINDS, LatencyFold
from widgets.levels import VIEW as LEVELS
from widgets.levels.fold import LevelsFold
from widgets.levels.picture import picture, prepare
from widgets.picture import ceiling, extremes, spread, steps, ticks
from widgets.svg import svg
from widgets.view import view


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
    drawn = picture(prepare(folded(LevelsFold(), [header, *errors])), 0.1, "")
    assert "engine" not in drawn.question and drawn.question.endswith("?")
    (plot,) = drawn.plots
    assert plot.title == "output error"
    assert [line.name for line in plot.lines] == ["recurrent", "parallel"]
    assert picture(prepare(folded(LevelsFold(), levels(3))), 0.0, "").question == ""


def test_the_figures_are_the_levels_at_the_cursor():
    ready = prepare(folded(LevelsFold(), levels(20)))
    shown = {what: text for text, what in picture(ready, 0.055, "").figures}
    assert shown["running"] == "5"
    assert {w: t for t, w in picture(ready, 9.0, "").figures}["pages used"] == "80 %"


def test_a_long_line_keeps_every_extreme_and_says_what_it_left_out():
    events = levels(50_000)
    events[25_000] = Level(events[25_000].time, "engine", "running", 99.0)
    shown = picture(prepare(folded(LevelsFold(), events)), 0.0, "")
    line = shown.plots[0].lines[0]
    assert len(line.x) <= 2000 and line.y.max() == 99.0
    assert "of 50 k points" in shown.note


def test_the_sum_of_many_lanes_is_what_they_hold_together():
    events = [Level(0.1 * lane, f"engine{lane}", "running", 2.0) for lane in range(9)]
    shown = picture(prepare(folded(LevelsFold(), events)), 1.0, "")
    assert [line.name for line in shown.plots[0].lines if len(line.x)] == ["running"]
    assert shown.plots[0].lines[0].y.tolist()[-1] == 18.0


def test_modelled_levels_are_dashed_and_real_ones_solid():
    real = picture(prepare(folded(LevelsFold(), levels(5))), 0.0, "")
    modelled = picture(prepare(folded(LevelsFold(), levels(5, "virtual"))), 0.0, "")
    assert not real.plots[0].lines[0].modelled and modelled.plots[0].lines[0].modelled
    assert 'stroke-dasharray="6 3"' in svg(modelled, "?") != svg(real, "?")


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
    assert drawing.shown.figures[-1] == ("2", "finished")
    assert first.right == drawing.shown.plots[0].right  # the axes do not jump while time passes


def test_a_promise_says_who_kept_it():
    drawing = LatencyDrawing()
    queued = [Branch(float(i), f"r{i}", "", "queued") for i in range(4)]
    spoken = [Token(i + 0.1 * (i + 1), f"r{i}", "a") for i in range(4)]
    events = sorted([*queued, *spoken], key=lambda event: event.time)
    drawing.show(folded(LatencyFold(), events), 9.0)
    drawing.promise("time_to_first_token", 0.25)
    assert drawing.shown.plots[0].limits[0].text == "50 % within 250 ms"
    drawing.promise("time_to_first_token", None)
    assert not drawing.shown.plots[0].limits


def test_a_chosen_request_is_marked_on_every_curve_it_is_on():
    log = made_serving(requests=6)
    drawing = LatencyDrawing()
    drawing.show(folded(LatencyFold(), log), log.duration)
    drawing.choose("r1")
    assert [dot.owner for plot in drawing.shown.plots for dot in plot.dots] == ["r1"] * 3
    drawing.choose("")
    assert not any(plot.dots for plot in drawing.shown.plots)


def test_an_unchanged_frame_sends_nothing_and_a_longer_one_only_its_tail():
    drawing = LEVELS.draw()
    drawing.show(folded(LevelsFold(), levels(50)), 0.0)
    made, source = drawing.axes[0], drawing.axes[0].sources[0]
    page, sent = Document(), []
    page.add_root(made.figure)
    page.on_change(lambda event: sent.append(event) if "Column" in type(event).__name__ else None)
    drawing.show(folded(LevelsFold(), levels(50)), 0.2)
    assert sent == []
    drawing.show(folded(LevelsFold(), levels(55)), 0.2)
    assert drawing.axes[0] is made
    kinds = [type(event).__name__ for event in sent if event.model is source]
    assert kinds == ["ColumnsPatchedEvent", "ColumnsStreamedEvent"]
    expected = steps(*folded(LevelsFold(), levels(55))["levels"]["running"]["engine"], 0.55)
    np.testing.assert_array_equal(source.data["x"], expected.x)
    np.testing.assert_array_equal(source.data["y"], expected.y)


@pytest.mark.parametrize("name", ["levels", "latency"])
def test_the_axes_are_made_once_for_a_run_that_grows_and_for_the_next_one(name):
    drawing, fold = view(name).draw(), view(name).fold()
    log = made_serving(requests=10, pages=64)
    made = None
    for place, event in enumerate(log):
        fold.add(event)
        if place % 97 == 30 or place == len(log) - 1:
            drawing.show(fold.frame(), event.time)
            made = made or list(drawing.axes) or None
    for clock in ("virtual", "wall"):
        fold = view(name).fold()
        for event in made_serving(seed=4, requests=5, clock=clock):
            fold.add(event)
            if event.time == 0:
                drawing.show(fold.frame(), 0.0)
        drawing.show(fold.frame(), 9.0)
        dash = drawing.axes[0].glyphs[0].glyph.line_dash
        assert bool(dash) == (clock == "virtual")
    assert drawing.axes == made


def test_the_name_of_a_level_is_text_in_the_reading_under_the_pointer():
    drawing = LEVELS.draw()
    evil = [Level(float(i), "engine", "<img src=x onerror=alert(1)>@y", float(i)) for i in range(3)]
    drawing.show(folded(LevelsFold(), evil), 0.0)
    tools = drawing.axes[0].figure.select({"type": HoverTool})
    assert [tool for tool in tools if "<img" in tool.tooltips] == []
    assert "&lt;img" in tools[0].tooltips and "@y{0,0.[0]} " in tools[0].tooltips
    assert "&#64;y" in tools[0].tooltips


def test_an_empty_log_says_what_to_do():
    assert "start a run" in picture(prepare(LevelsFold().frame()), 0.0, "").empty
    drawing = LatencyDrawing()
    drawing.show(LatencyFold().frame(), 0.0)
    assert "first token" in drawing.shown.empty


@pytest.mark.parametrize("value", [0.3, 1.0, 7.2, 99.0, 1e-7, 12345.0])
def test_an_axis_ends_at_a_round_number_that_holds_its_values(value):
    assert value <= ceiling(value) * 1.0001 and ceiling(value) <= value * 2
    marks = ticks(0, ceiling(value), 4)
    assert marks[0] == 0 and 3 <= len(marks) <= 7 and marks[-1] <= ceiling(value) * 1.001


def test_names_stand_apart_within_bounds_and_in_order():
    placed = spread([5.0, 5.0, 90.0, 6.0], 10, 0, 90)
    assert sorted(placed) == pytest.approx([5, 15, 25, 90])
    crowded = spread([88.0, 89.0, 90.0], 10, 0, 90)
    assert crowded == pytest.approx([70, 80, 90])


def test_extremes_keep_both_ends():
    found = extremes(np.sin(np.arange(10_000)), 200)
    assert len(found) <= 200 and found[0] == 0 and found[-1] == 9999


def test_a_chart_becomes_as_high_as_asked_and_its_labels_stand_apart():
    drawing = LatencyDrawing()
    drawing.show(folded(LatencyFold(), made_serving(requests=12)), 9.0)
    usual = drawing.axes[0].figure.height
    drawing._grip.wanted = 120.0
    assert {axes.figure.height for axes in drawing.axes} == {94}
    places = sorted(drawing.axes[0].figure.yaxis[0].ticker.ticks)
    inner = 94 - 60
    assert min(b - a for a, b in zip(places, places[1:], strict=False)) * inner > 10
    drawing._grip.wanted = 0.0
    assert drawing.axes[0].figure.height == usual


def test_a_stack_of_plots_shares_the_height_among_its_plots():
    drawing = LEVELS.draw()
    drawing.show(folded(LevelsFold(), levels(20)), 0.1)
    drawing._grip.wanted = 26.0 + 2 * 150
    assert [axes.figure.height for axes in drawing.axes] == [150, 176]
