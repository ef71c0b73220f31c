"""Charts as Bokeh figures: every point, interval, limit and colour as the view has it."""

import numpy as np
import pytest
from bokeh.models import Band, HoverTool, Label, SaveTool, Span, WheelZoomTool, Whisker

from engine.core.errors import BadInput
from engine.core.events import Blob, Opened
from engine.core.log import Log
from tests.widgets.chart.charting import ramp, waits
from tests.widgets.made_runs import serving
from widgets import theme
from widgets.chart.picture import Limit
from widgets.figure import Panel, Series, figure
from widgets.figure.of_log import chart, charts, figure_of
from widgets.figure.panel import unit

X = np.array([1.0, 2.0, 4.0, 8.0])


def panel(**more):
    series = (
        Series("real", X, 1 / X, 0.8 / X, 1.2 / X, hue=2),
        Series("model (modelled)", X, 2 / X, hue=3, modelled=True),
        Series("floor (bound)", X, 0.5 / X, bound=True),
    )
    facts = {"x": "width", "y": "latency (s)", "log_x": True, "log_y": True}
    return Panel("Latency", series, **{**facts, **more})


def lines(made):
    return [r for r in made.renderers if type(r.glyph).__name__ in ("Line", "Step")]


def curves():
    log = Log([Opened(0.0, {}, facts={"curves": {"speed": {"x": "ranks", "y": "time (s)"}}})])
    log.blobs["c"] = np.array([[1.0, 2.0], [4.0, 2.0], [3.0, 1.0], [5.0, 3.0]])
    log.emit(Blob(1.0, "curve/speed/ring", "c", [4, 2]))
    return log


def test_each_line_keeps_its_points_its_hue_and_its_way_of_saying_that_it_is_modelled():
    made = figure(panel())
    real, modelled, bound = lines(made)
    assert real.data_source.data["y"].tolist() == (1 / X).tolist()
    assert real.glyph.line_color == theme.hues()[2] and real.glyph.line_dash == []
    assert modelled.glyph.line_dash == [6] and modelled.glyph.line_color == theme.hues()[3]
    assert bound.glyph.line_color == theme.scheme(False).faint and bound.glyph.line_dash
    assert [item.label.value for item in made.legend[0].items] == [s.name for s in panel().series]


def test_an_interval_is_a_band_and_of_few_points_whiskers_too():
    made = figure(panel())
    bands = [r for r in made.renderers if type(r.glyph).__name__ == "VArea"]
    assert [b.data_source.data["high"].tolist() for b in bands] == [(1.2 / X).tolist()]
    assert len(made.select(Whisker)) == 1 and not made.select(Band)
    many = np.arange(100.0)
    plain = figure(Panel("many", (Series("a", many, many, many - 1, many + 1),)))
    assert not plain.select(Whisker) and "interval" in dict(plain.select(HoverTool)[0].tooltips)


def test_the_label_of_a_level_line_keeps_clear_of_curves_and_of_another_label():
    falling = Series("falls", np.array([1.0, 2.0, 3.0]), np.array([3.0, 2.0, 1.0]))
    shown = Panel("", (falling,), "x", "y", limits=(Limit(1.2, "needed"), Limit(1.25, "the paper")))
    labels = {label.text: label for label in figure(shown).select(Label)}
    assert labels["needed"].text_align == "left" and labels["needed"].y_offset < 0
    assert labels["the paper"].text_align == "left" and labels["the paper"].y_offset > 0


def test_the_axis_reaches_a_level_line_that_is_near_and_not_one_far_away():
    flat = Series("is", np.array([1.0, 2.0]), np.array([1.2, 2.0]))
    heights = [
        {y for one in figure(Panel("", (flat,), "x", "y", limits=(Limit(at, "l"),))).renderers
         for y in np.ravel(one.data_source.data.get("y", [])).tolist()}
        for at in (1.0, 30.0)
    ]  # fmt: skip
    assert 1.0 in heights[0] and 30.0 not in heights[1]


def test_limits_stand_across_and_upright_with_their_words():
    made = figure(panel(limits=(Limit(4.0, "default", True), Limit(0.3, "promised"))))
    spans = {span.dimension: span.location for span in made.select(Span)}
    assert spans == {"height": 4.0, "width": 0.3}
    assert {label.text for label in made.select(Label)} == {"default", "promised"}


def test_a_page_scrolls_over_it_and_it_can_be_saved():
    made = figure(panel())
    assert made.select(SaveTool) and made.select(HoverTool)
    assert made.toolbar.active_scroll in ("auto", None) and made.select(WheelZoomTool)


def test_points_an_axis_cannot_show_are_left_out_and_a_linear_one_starts_at_nought():
    values = np.array([0.0, 1.0, np.nan, 3.0])
    made = figure(Panel("a", (Series("a", X, values),), log_y=True))
    assert lines(made)[0].data_source.data["x"].tolist() == [2.0, 8.0]
    assert figure(Panel("a", (Series("a", X, values),))).y_range.start == 0.0
    assert np.isnan(figure(Panel("a", (Series("a", X, -values),))).y_range.start)


@pytest.mark.parametrize("dark", [False, True])
def test_it_wears_the_theme(dark):
    made = figure(panel(), dark=dark)
    assert made.background_fill_color == theme.scheme(dark).paper
    assert made.title.text_color == theme.scheme(dark).ink
    assert lines(made)[0].glyph.line_color == theme.hues(dark)[2]


def test_the_charts_of_a_run_by_the_names_of_their_views():
    assert sorted(charts()) == ["acceptance", "curves", "latency", "levels"]
    made = figure_of(curves(), "curves")
    assert made.title.text == "speed" and lines(made)[0].data_source.data["low"].tolist() == [3, 1]
    grid = figure_of(serving(1, requests=12), "latency")
    assert [child[0].title.text for child in grid.children][0] == "Time to first token"
    ramped = figure_of(ramp(), "levels")
    assert lines(ramped)[0].data_source.data["y"].tolist()[:10] == list(range(10))


def test_latencies_say_their_quantiles_and_units():
    first = chart(waits(100), "latency")
    made = figure(first).children[0][0]
    texts = {label.text for label in made.select(Label)}
    assert any(text.startswith("p50: ") for text in texts)
    assert made.xaxis[0].axis_label == "time to first token (s)"
    assert made.yaxis[0].axis_label == "share"


def test_what_cannot_be_drawn_is_one_clear_line():
    with pytest.raises(BadInput, match=r"figure 'schedule': no chart .*curves"):
        figure_of(ramp(), "schedule")
    with pytest.raises(BadInput, match="No latencies yet"):
        figure_of(ramp(), "latency")
    with pytest.raises(BadInput, match="no points"):
        figure(Panel("a", ()))
    with pytest.raises(BadInput, match="has no lines"):
        figure({"lanes": 3})


def test_units_are_those_in_brackets():
    assert unit("time (s)") == "s" and unit("held (B)") == "B"
    assert unit("tokens (thousands)") == "" and unit("") == ""
