"""The roofline's fold: which roof binds, how much is reached, what is lost; nothing twice."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.core.events import Mark, Opened, Span
from tests.widgets.views.roofline.made import ROOFS, log, roof, span
from widgets.canvas.packing import unpack
from widgets.chart.picture import Scales
from widgets.theme import HUES
from widgets.views.roofline.draw import RooflineDrawing
from widgets.views.roofline.fold import RooflineFold
from widgets.views.roofline.judge import Roofs
from widgets.views.roofline.marks import MOST


def frame_of(*spans, **header):
    fold = RooflineFold()
    for event in log(*spans, **header):
        fold.add(event)
    return fold.frame()


def mark_of(*spans, **header):
    (mark,) = frame_of(*spans, **header)["marks"]
    return mark


def test_operators_have_a_hue_each_while_there_are_any_and_one_more_has_one_of_them():
    count = len(HUES)
    spans = [span(float(n), n + 0.5, 1e6, 1e6, lane=f"operator {n}") for n in range(count + 1)]
    hues = [mark["hue"] for mark in frame_of(*spans)["marks"]]
    assert sorted(hues[:count]) == list(range(count)) and hues[count] in range(count)


def test_memory_bound_work_is_told_as_a_share_of_the_memory_roof():
    mark = mark_of(span(1.0, 1.1, 1e7, 0.78e8, dtype="float32", shape="8x512", phase="decode"))
    assert mark["words"][1] == "memory-bound, 78% of DRAM read"
    assert mark["bound"] == "bandwidth" and mark["share"] == pytest.approx(0.78)
    assert mark["lost"] == pytest.approx(0.1 * 0.22)
    assert mark["x"] == pytest.approx(1e7 / 0.78e8) and mark["y"] == pytest.approx(1e8)
    assert mark["limit"] == pytest.approx(mark["x"] * 1e9), "the hairline ends on the roof"


def test_compute_bound_work_is_held_to_the_roof_of_its_dtype():
    same = (span(0.0, 1.0, 5e10, 1e6, dtype=dtype) for dtype in ("float32", "bfloat16"))
    float32, bfloat16 = frame_of(*same)["marks"]
    assert float32["words"][1] == "compute-bound, 50% of float32 multiply-add"
    assert bfloat16["words"][1] == "compute-bound, 12% of bfloat16 matmul"


def test_a_levels_own_traffic_can_bind_and_is_drawn_at_its_own_intensity():
    mark = mark_of(span(0.0, 1.0, 1e9, 1e8, dtype="float32", L2=2e9))
    assert mark["words"][1] == "memory-bound, 50% of L2 read"
    assert mark["at"] == pytest.approx(0.5) and mark["levels"] == [["L2", 0.5]]
    assert mark["limit"] == pytest.approx(4e9 * 0.5)


def test_data_that_stays_in_a_cache_is_held_to_that_cache():
    mark = mark_of(span(0.0, 1.0, 1e6, 3e9, resident="L2"))
    assert mark["words"][1] == "memory-bound, 75% of L2 read"
    outside = mark_of(span(0.0, 1.0, 1e6, 3e9))
    assert "nearer cache" in outside["words"][1] and outside["lost"] == 0.0


def test_exponentials_bind_where_they_take_longest():
    mark = mark_of(span(0.0, 1.0, 1e6, 1e6, specials=5e7))
    assert mark["words"][1] == "exponential-bound, 50% of exponentials"


def test_work_shorter_than_starting_it_is_bound_by_the_launch():
    mark = mark_of(span(0.0, 2e-4, 1e4, 1e4))
    assert mark["words"][1] == "launch-bound, 5% of DRAM read"


def test_spans_alike_are_one_mark_and_their_time_adds_up():
    spans = [span(i, i + 0.5 + 0.1 * i, 1e6, 1e6, shape="1x2") for i in range(3)]
    mark = mark_of(*spans)
    assert mark["seconds"] == pytest.approx(0.5 + 0.6 + 0.7)
    assert "3 times" in mark["words"][3] and "at best 500 ms" in mark["words"][4]
    assert len(frame_of(*spans, span(3, 4, 1e6, 1e6, shape="2x2"))["marks"]) == 2


def test_marks_are_called_by_what_tells_them_apart():
    def labels(*named):
        spans = [
            span(i, i + 0.5, 1e6, 1e6, name=name, shape=s) for i, (name, s) in enumerate(named)
        ]
        return sorted(mark["label"] for mark in frame_of(*spans)["marks"])

    assert labels(("ours", "1x2"), ("torch", "1x2")) == ["matmul ours", "matmul torch"]
    assert labels(("ours", "1x2"), ("ours", "2x2")) == ["matmul 1x2", "matmul 2x2"]
    four = labels(*((name, shape) for name in ("ours", "torch") for shape in ("1x2", "2x2")))
    assert four == [
        f"matmul {name} {shape}" for name in ("ours", "torch") for shape in ("1x2", "2x2")
    ]


def test_work_on_another_device_is_a_ghost_under_that_devices_roofs():
    ghost = span(1.0, 1.5, 1e11, 1e9, dtype="bfloat16", device="gpu", grade="modelled")
    frame = frame_of(span(0.0, 1.0, 1e9, 1e9, dtype="float32"), ghost)
    own, other = frame["marks"]
    assert (own["ghost"], other["ghost"]) == (False, True) and other["modelled"]
    assert other["roof"] == "HBM" and frame["figures"][0] == ["achieved / limit", "100 %"]


def test_parts_of_a_step_are_not_counted_beside_the_step():
    frame = frame_of(
        span(0.0, 0.25, 1e8, 1e8, "engine", "attention", of="step", phase="decode"),
        span(0.25, 0.5, 1e8, 2e8, "engine", "mlp", of="step", phase="decode"),
        span(0.0, 1.0, 2e8, 3e8, "engine", "step", phase="decode", decode=4),
    )
    assert frame["both"] and [mark["part"] for mark in frame["marks"]] == [True, True, False]
    assert frame["figures"][0][1] == "60 %" and frame["figures_whole"][0][1] == "30 %"
    assert "engine attention loses most: 150 ms" in frame["lead"]
    assert frame["marks"][2]["title"] == "step, decode 4"


def test_a_sentence_says_the_share_of_time_that_memory_binds_and_what_loses_most():
    frame = frame_of(
        span(0.0, 3.0, 1e7, 1e9, "norm", dtype="float32"),
        span(3.0, 4.0, 5e10, 1e6, "matmul", dtype="float32"),
    )
    assert frame["lead"] == (
        "75 % of the time is memory-bound; norm panels loses most: 2 s, at 33.3 % of its limit."
    )
    assert frame["figures"] == [["achieved / limit", "37.5 %"], ["lost in all", "2.5 s"]]


def test_without_roofs_points_stand_and_the_view_says_how_to_get_them():
    frame = frame_of(span(0.0, 1.0, 1e6, 1e6), roofs=[])
    assert frame["marks"][0]["share"] is None and frame["marks"][0]["limit"] == 0.0
    ((how, what),) = frame["figures"]
    assert what == "no roofs" and "Roofline page" in how


@pytest.mark.parametrize("rows", [None, 3, "x", [3], [{"value": "a"}], [{"value": -1.0}], [{}]])
def test_a_header_with_damaged_roofs_is_read_as_having_none(rows):
    assert frame_of(span(0.0, 1.0, 1e6, 1e6), roofs=rows)["roofs"] == []


def test_spans_without_counted_work_are_no_points():
    assert frame_of(Span(1.0, "r1", "prefill", 0.0))["empty"].startswith("No counted work yet")


def test_dtypes_not_in_use_on_a_data_sheet_stay_folded_away():
    roofs = [*ROOFS, roof("int8", "compute", 2e15, dtype="int8", device="gpu", grade="sheet")]
    frame = frame_of(span(0.0, 1.0, 1e6, 1e6, dtype="bfloat16"), roofs=roofs)
    shown = {r["name"]: r["shown"] for r in frame["roofs"]}
    assert shown["int8"] is False and shown["bfloat16"] and shown["float32 multiply-add"]
    assert "exponentials" not in shown and "launches" not in shown


def test_endless_new_shapes_do_not_grow_the_state_without_bound():
    fold = RooflineFold()
    fold.add(Opened(0.0, {}))
    for i in range(MOST + 500):
        fold.add(span(i, i + 1, 1e6, 1e6, shape=f"{i}x1"))
    assert len(fold.marks) == MOST + 1 and sum(m.count for m in fold.marks.values()) == MOST + 500


@given(st.floats(1.0, 1e14), st.floats(1.0, 1e12), st.floats(1e-6, 1e3), st.floats(0, 1e12))
def test_the_binding_roof_is_the_one_that_asks_for_the_most_time(flops, size, seconds, level):
    fold = RooflineFold()
    told = {"L2": level} if level else {}
    for event in log(span(0.0, seconds, flops, size, dtype="float32", **told)):
        fold.add(event)
    (mark,) = fold.marks.values()
    verdict = Roofs([r for r in ROOFS if r["device"] == "here"]).judge(mark)
    asks = (flops / 1e11, size / 1e9, mark.levels.get("L2", 0.0) / 4e9)
    assert verdict.least == pytest.approx(max(asks))
    assert verdict.lost(mark) == pytest.approx(max(0.0, mark.seconds - max(asks)), abs=1e-9)
    assert math.isfinite(verdict.at) and verdict.at > 0


def test_compared_runs_lend_each_other_their_marks_as_ghosts():
    scales = Scales()
    one, other = RooflineDrawing(), RooflineDrawing()
    one.scales = other.scales = scales
    first = frame_of(span(0.0, 1.0, 1e6, 1e6, lane="norm"))
    second = frame_of(span(0.0, 1.0, 1e6, 1e6, lane="rotary"))
    one.show(first, 0.0)
    other.show(second, 0.0)
    one.show(first, 0.0)
    assert [g["title"] for g in unpack(one._state["frame"])["ghosts"]] == ["rotary panels"]
    assert [g["title"] for g in unpack(other._state["frame"])["ghosts"]] == ["norm panels"]


def test_a_run_of_a_gpu_says_of_which():
    assert frame_of(span(0.0, 1.0, 1e6, 1e6), gpu="NVIDIA H200")["note"].startswith(
        "measured on NVIDIA H200"
    )
    assert "measured on" not in frame_of(span(0.0, 1.0, 1e6, 1e6))["note"]


def test_roofs_in_doubt_are_said_first_and_no_share_stands_above_all_of_a_limit():
    fold = RooflineFold()
    for event in log():
        fold.add(event)
    fold.add(Mark(0.0, "machine", "caution", "roofs measured while other work took 90%"))
    fold.add(span(0.0, 1.0, 1e6, 5e8))
    assert ["achieved / limit, of roofs in doubt", "50 %"] in fold.frame()["figures"]
    assert fold.frame()["note"].startswith("roofs measured while other work took 90%")
    fold.add(span(1.0, 1.1, 9e10, 1e3, lane="mlp", dtype="float32"))
    words = [mark["words"][1] for mark in fold.frame()["marks"]]
    assert any("more than" in text and "allows" in text for text in words)
    assert [value for name, value in fold.frame()["figures"] if "achieved" in name] == ["not known"]
