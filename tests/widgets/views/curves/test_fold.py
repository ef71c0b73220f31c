"""Curves from blobs: which lines there are, in which panels, and what of them the browser gets."""

import numpy as np

from engine.core.events import Blob, Closed, Opened
from engine.core.log import Log
from widgets.views.curves.fold import Curves


def made(*blobs, facts=None, clock="wall"):
    """A fold of these (name, rows) in order."""
    log = Log([Opened(0.0, {}, clock=clock, facts={"curves": facts or {}})])
    for place, (name, rows) in enumerate(blobs):
        log.blobs[f"b{place}"] = np.asarray(rows, float)
        log.emit(Blob(0.1 * place, name, f"b{place}", list(log.blobs[f"b{place}"].shape)))
    fold = Curves()
    fold.blobs = log.blobs
    for event in log:
        fold.add(event)
    return fold


def line(frame, panel, name):
    series = next(
        s for p in frame["panels"] if p["name"] == panel for s in p["series"] if s["name"] == name
    )
    part = slice(series["first"], series["first"] + series["count"])
    return series, {k: frame[k][part].tolist() for k in ("x", "y", "low", "high")}


def test_panels_and_their_axes_come_as_the_header_says():
    facts = {"time": {"x": "length (tokens)", "y": "time (s)", "log_x": True}}
    frame = made(
        ("curve/time/ours", [[1, 2], [3, 4]]), ("curve/bytes/ours", [[1], [9]]), facts=facts
    ).frame()
    first, second = frame["panels"]
    assert (first["name"], first["x"], first["log_x"], first["log_y"]) == (
        "time", "length (tokens)", True, False,
    )  # fmt: skip
    assert second["name"] == "bytes" and second["x"] == ""
    assert line(frame, "bytes", "ours")[1]["y"] == [9.0]


def test_panels_stand_as_the_header_names_them_and_hues_stay_as_they_came():
    first = ("curve/bytes/theirs", [[1], [9]])
    later = ("curve/time/ours", [[1], [2]])
    facts = {"unseen": {}, "time": {}, "bytes": {}}
    frame = made(first, later, facts=facts).frame()
    assert [panel["name"] for panel in frame["panels"]] == ["time", "bytes"]
    assert line(frame, "bytes", "theirs")[0]["hue"] == 0
    assert line(frame, "time", "ours")[0]["hue"] == 1


def test_a_later_blob_takes_the_place_of_the_earlier_one():
    fold = made(("curve/a/b", [[1], [1]]), ("curve/a/b", [[1, 2], [1, 5]]))
    series, rows = line(fold.frame(), "a", "b")
    assert series["count"] == 2 and rows["y"] == [1.0, 5.0] and len(fold.frame()["x"]) == 2


def test_bounds_and_modelled_lines_share_the_name_of_what_they_belong_to():
    frame = made(
        ("curve/a/ours", [[1], [1]]), ("curve/a/ours (modelled)", [[1], [2]]),
        ("curve/a/bandwidth (bound)", [[1], [3]]), ("curve/b/theirs", [[1], [4]]),
    ).frame()  # fmt: skip
    ours, modelled = line(frame, "a", "ours")[0], line(frame, "a", "ours (modelled)")[0]
    assert modelled["modelled"] and not ours["modelled"]
    assert modelled["base"] == "ours" and modelled["hue"] == ours["hue"]
    assert line(frame, "a", "bandwidth (bound)")[0]["bound"]
    assert line(frame, "b", "theirs")[0]["hue"] != ours["hue"]
    assert frame["figures"] == [["ours", "1"], ["ours (modelled)", "2"]]  # a limit ends nowhere


def test_on_the_virtual_clock_every_line_is_modelled_but_a_bound():
    frame = made(("curve/a/b", [[1], [1]]), ("curve/a/c (bound)", [[1], [1]]), clock="virtual")
    frame = frame.frame()
    assert line(frame, "a", "b")[0]["modelled"] and not line(frame, "a", "c (bound)")[0]["modelled"]


def test_an_interval_is_kept_and_is_nothing_where_none_was_given():
    frame = made(("curve/a/b", [[1, 2], [5, 6], [4, 5], [7, 8]]), ("curve/a/c", [[1], [2]])).frame()
    assert line(frame, "a", "b")[1]["high"] == [7.0, 8.0]
    assert np.isnan(line(frame, "a", "c")[1]["low"]).all()


def test_a_long_line_keeps_its_extremes_and_the_frame_says_how_many_there_were():
    y = np.zeros(50_000)
    y[31_234] = 9.0
    frame = made(("curve/a/b", [np.arange(50_000), y])).frame()
    assert len(frame["x"]) <= 2000 and frame["y"].max() == 9.0 and frame["points"] == 50_000


def test_what_is_no_curve_is_named_and_the_rest_is_shown():
    frame = made(("curve/a/b", [1, 2, 3]), ("curve/a/c", [[1], [2]]), ("attention", [[1], [2]]))
    frame = frame.frame()
    assert frame["wrong"] == ["a/b"] and [s["name"] for s in frame["panels"][0]["series"]] == ["c"]


def test_nothing_yet_says_what_to_do_that_it_waits_or_that_there_is_none():
    fold = Curves()
    assert "Start a run" in fold.frame()["empty"]
    fold.add(Opened(0.0, {}))
    assert fold.frame()["empty"] == "No curves yet: the run goes on."
    fold.add(Closed(1.0, "finished"))
    assert fold.copy().frame()["empty"] == "No curves in this run."


def test_the_header_says_what_the_curves_answer():
    fold = Curves()
    fold.add(Opened(0.0, {}, facts={"question": "Which is faster?"}))
    assert fold.copy().frame()["question"] == "Which is faster?"


def test_figures_are_where_the_lines_of_the_first_panel_end():
    axes = {"time": {"x": "tensor (B)", "y": "time (s)"}}
    lines = [(f"curve/time/{n}", [[1024, 2048], [9.0, 0.001 * n]]) for n in range(1, 6)]
    frame = made(*lines, ("curve/other/b", [[1], [3]]), facts=axes).frame()
    assert frame["figures"] == [["least: 1", "1 ms"], ["most: 5", "5 ms"]]
    assert frame["meant"][0] == "time: time of 1 where it ends, at tensor 2 KiB"
    few = made(*lines[:2], facts=axes).frame()
    assert few["figures"] == [["1", "1 ms"], ["2", "2 ms"]]
    assert made().frame()["figures"] == []
