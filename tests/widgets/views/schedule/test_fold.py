"""Schedules from spans: rows, idle time, layers, what is left out, memory and the critical path."""

import numpy as np
import pytest

from engine.core.events import Level, Mark, Move
from tests.widgets.views.schedule.made import log, pipeline, span
from widgets.canvas.packing import pack
from widgets.views.schedule.detail import MOST, reduce
from widgets.views.schedule.fold import Schedule
from widgets.views.schedule.messages import MOST as MOST_MESSAGES
from widgets.views.schedule.side_by_side import FEW


def folded(made):
    fold = Schedule()
    for event in made:
        fold.add(event)
    return fold.frame()


def figures(made):
    return dict(folded(made)["figures"])


@pytest.mark.parametrize(("stages", "batches"), [(4, 8), (3, 9), (8, 16)])
def test_the_idle_share_of_a_1f1b_pipeline_is_the_textbook_one(stages, batches):
    """With equal passes the bubble is (p - 1) / (m + p - 1) of the total time."""
    frame = folded(pipeline(stages, batches))
    shown = dict(frame["figures"])
    total = (stages - 1) / (batches + stages - 1)
    assert float(shown["idle of total"].rstrip(" %")) == pytest.approx(100 * total, rel=5e-3)
    assert shown["makespan"] == f"{2 * (batches + stages - 1)} s"


def test_a_pipeline_s_bubble_is_one_figure_at_every_moment_with_what_it_means():
    """Of passes alone, from the first one on: an update or a sum of gradients is none."""
    words = "bubble (no pass): 27.27% of the total, 37.50% of the ideal time"
    passes = pipeline(4, 8)
    end = passes.events[-1].time
    after = [span(f"rank {rank}", "optimiser", end, end + 9) for rank in range(4)]
    made = log(*passes.events[1:-1], *after, Mark(end + 9, "plan", "bubble", words))
    frame = folded(made)
    assert frame["figures"][1] == ["bubble (no pass)", "27.3 %"] and frame["meant"][1] == words
    assert frame["said"] == []
    first = np.searchsorted(frame["running1_time"], 2.0)  # two ranks have had nothing to do
    assert frame["running1_value"][first] == pytest.approx(1 - 3 / 8, abs=0.02)
    assert frame["running1_value"][-1] == pytest.approx(3 / 11)
    told = Mark(end, "plan", "bubble", f"of the first step: {words}")  # of a run of many steps
    assert folded(log(*passes.events[1:-1], told))["said"] == [["bubble", told.text]]


def test_jobs_that_take_turns_share_the_machine_that_is_idle():
    made = log(span("job 0", "run", 0.0, 4.0), span("job 1", "run", 4.0, 5.0),
               span("job 0", "run", 8.0, 10.0), workers=1)  # fmt: skip
    assert figures(made) == {"makespan": "10 s", "idle of total": "30 %"}


def test_time_in_which_a_lane_does_two_things_counts_once_and_idle_spans_do_not():
    made = log(
        span("a", "step", 0.0, 4.0), span("a", "part", 1.0, 2.0), span("a", "part", 3.0, 5.0),
        span("a", "idle", 5.0, 10.0), span("a", "tail", 9.0, 10.0),
    )  # fmt: skip
    assert figures(made)["idle of total"] == "40 %" and figures(made)["busiest: a"] == "6 s"


def test_lanes_are_those_of_the_header_in_its_order_with_the_empty_ones():
    made = log(span("b", "F", 0, 1), span("other", "F", 0, 1), lanes=["c", "b"])
    frame = folded(made)
    assert frame["names"] == ["c", "b"] and frame["span_row"].tolist() == [1]
    assert dict(frame["figures"])["idle of total"] == "50 %"


def test_lanes_of_a_step_are_those_with_spans_and_what_lies_between_recorded_steps_is_not_idle():
    apart = [
        span(lane, "op", step + part * 0.01, step + part * 0.01 + 0.01, mb=part % 2)
        for step in (0, 500)
        for part in range(FEW)
        for lane in (("a",) if step == 0 else ("a", "b"))
    ]
    frame = folded(log(*apart, lanes=["unused", "b", "a"], lanes_of="step"))
    assert frame["names"] == ["b", "a"] and set(frame["span_row"].tolist()) == {0, 1}
    told = dict(frame["figures"])
    assert told["in steps recorded"] == "480 ms" and told["lanes busy at once"] == "1.5"
    begin, end = frame["close"]  # where two lanes are busy
    assert 500 <= begin < end <= 500 + 0.01 * FEW + 1e-6
    assert folded(log(*apart, lanes=["b", "a"]))["close"] is None


def test_links_are_not_ranks_that_stand_idle():
    made = log(
        span("rank 0", "F", 0, 2), span("rank 1", "F", 2, 4), span("link 0 to 1", "send", 1, 2),
        lanes=["rank 0", "rank 1", "link 0 to 1"],
    )  # fmt: skip
    assert figures(made)["idle of total"] == "50 %"
    assert figures(made)["busiest: rank 0"] == "2 s"
    assert figures(log(span("link 0 to 1", "send", 0, 2)))["idle of total"] == "0 %"


def test_without_a_header_lanes_that_differ_in_a_number_stand_in_its_order():
    made = log(span("rank 10", "F", 0, 1), span("link", "send", 0, 2), span("rank 2", "F", 0, 3))
    frame = folded(made)
    assert frame["names"] == ["rank 2", "rank 10", "link"]
    assert frame["span_row"].tolist() == [1, 2, 0]


def test_a_microbatch_is_one_task_in_every_lane_and_a_request_keeps_its_name():
    made = log(
        span("a", "F", 0, 1, mb=3), span("b", "B", 1, 2, mb=3), span("b", "F", 2, 3, task="r7"),
        span("b", "F", 3, 4, mb=4),
    )  # fmt: skip
    frame = folded(made)
    task = frame["span_task"]
    assert task[0] == task[1] != task[3] and frame["tasks"] == ["mb 3", "r7", "mb 4"]


def test_a_measured_span_is_held_against_its_modelled_one():
    made = log(
        span("a", "F", 0.0, 1.2, mb=0), span("a", "F", 1.2, 2.0, mb=1),
        span("a", "F", 0.0, 1.0, mb=0, grade="modelled"),
        span("a", "B", 1.0, 9.0, grade="modelled"),
    )  # fmt: skip
    shown = reduce(folded(made), {})
    errors = {
        (shown["span_layer"][i], shown["span_task"][i]): float(e)
        for i, e in enumerate(shown["span_error"])
    }
    assert errors[0, 0] == pytest.approx(0.2) and np.isnan(errors[0, 1]) and np.isnan(errors[1, 0])
    assert shown["layers"] == 2 and not shown["modelled"]
    # Of what was measured, and of the clock beside it.
    assert dict(shown["figures"]) == {
        "makespan": "2 s", "idle of total": "0 %",
        "modelled makespan": "9 s", "modelled idle of total": "0 %",
    }  # fmt: skip


def test_the_virtual_clock_makes_everything_modelled():
    assert folded(log(span("a", "F", 0, 1), clock="virtual"))["modelled"]
    assert folded(log(span("a", "F", 0, 1, grade="modelled")))["modelled"]


def test_spans_that_overlap_stand_in_rows_of_their_own():
    made = log(
        span("a", "step", 0, 4), span("a", "x", 0, 2), span("a", "y", 2, 4), span("b", "z", 0, 4)
    )
    shown = reduce(folded(made), {})
    names = [shown["kinds"][kind] for kind in shown["span_kind"]]
    depth = dict(zip(names, shown["span_depth"].tolist(), strict=True))
    assert depth == {"step": 0, "x": 1, "y": 1, "z": 0} and shown["deep"].tolist() == [2, 1]


def test_too_many_spans_are_put_together_and_none_is_lost_from_the_count():
    count, each = 3 * MOST, 1e-3
    made = log(*(span("a", "xy"[i % 7 == 0], i * each, (i + 0.5) * each) for i in range(count)))
    frame = folded(made)
    shown = reduce(frame, {})
    assert len(shown["span_row"]) <= MOST and shown["total"] == count
    assert shown["span_count"].sum() == count
    drawn = (shown["span_stop"] - shown["span_start"]).sum()
    assert drawn == pytest.approx(count * each / 2, rel=0.02)  # half idle, and it shows
    assert shown["deep"].tolist() == [1]
    near = reduce(frame, {"start": 1.0, "stop": 1.5, "first": 0, "last": 1})
    assert (near["span_count"] == 1).all() and len(near["span_row"]) > 500


def test_memory_is_stacked_by_kind_and_keeps_its_peak_when_thinned():
    levels = [Level(0.001 * i, "a", "memory/buffers", float(i % 5)) for i in range(20_000)]
    levels[12_345] = Level(12.345, "a", "memory/buffers", 99.0)
    made = log(span("a", "F", 0, 20), Level(0, "a", "memory/weights", 10.0), *levels,
               memory_limit=200)  # fmt: skip
    shown = reduce(folded(made), {})
    assert shown["memory_kinds"] == ["weights", "buffers"] and shown["memory_limit"] == 200
    assert shown["memory_peak"].tolist() == [109.0]
    assert shown["memory_value"].shape[1] <= 1500
    assert shown["memory_value"].sum(axis=0).max() == 109.0


def test_the_critical_path_follows_what_the_end_waited_for():
    made = log(
        span("a", "F", 0, 2, mb=0), span("b", "F", 2, 3, mb=0), span("a", "F", 2, 6, mb=1),
        span("b", "F", 6, 7, mb=1), span("b", "B", 7, 8, mb=0), span("c", "x", 0, 1),
        lanes=["a", "b", "c"],
    )  # fmt: skip
    shown = reduce(folded(made), {"critical": True})
    path = list(zip(shown["path_row"].tolist(), shown["path_start"].tolist(), strict=True))
    assert path == [(0, 0.0), (0, 2.0), (1, 6.0), (1, 7.0)]
    assert shown["path_note"] == "critical path: 4 spans, 100 % of it work"
    assert "path_row" not in reduce(folded(made), {})


def test_the_critical_path_goes_over_messages_and_says_how_long_it_was_on_its_way():
    made = log(
        span("a", "F", 0, 2, mb=0), Move(5, "a", "b", 9.0, 2.0, tag="mb=0"),
        span("b", "F", 0, 1), span("b", "F", 5, 7, mb=0),
        Move(8, "b", "a", 9.0, 7.0), span("a", "F", 3, 4), span("a", "F", 8, 10),
        lanes=["a", "b"],
    )  # fmt: skip
    shown = reduce(folded(made), {"critical": True})
    names = ("path_row", "path_start", "path_way")
    path = list(zip(*(shown[name].tolist() for name in names), strict=True))
    assert path == [(0, 0.0, 0), (1, 2.0, 1), (1, 5.0, 0), (0, 7.0, 1), (0, 8.0, 0)]
    assert shown["path_note"] == (
        "critical path: 3 spans and 2 messages, 60 % of it work, 40 % on its way"
    )


def test_a_frame_can_be_packed_and_is_the_same_object_until_something_happens():
    fold = Schedule()
    for event in pipeline(3, 4, memory=True):
        fold.add(event)
    assert fold.frame() is fold.frame()
    assert pack(reduce(fold.frame(), {"critical": True}))


def test_the_plan_comes_as_text_on_one_line_with_what_was_found_of_it():
    found = Mark(0.0, "plan", "memory limit", "rank 0 holds 9 activations")
    frame = folded(log(found, span("a", "F", 0.0, 1.0), plan="0F0 0B0\n1F0 1B0"))
    assert frame["plan"] == "0F0 0B0; 1F0 1B0"
    assert frame["said"] == [["memory limit", "rank 0 holds 9 activations"]]
    assert folded(pipeline(2, 2))["plan"] == ""


def test_what_is_put_together_keeps_its_kind():
    count, each = 3 * MOST, 1e-3
    made = log(*(span("a", "xy"[i % 4 == 0], i * each, (i + 1) * each) for i in range(count)))
    shown = reduce(folded(made), {})
    took = shown["span_stop"] - shown["span_start"]
    for kind, share in (("x", 0.75), ("y", 0.25)):
        mine = shown["span_kind"] == shown["kinds"].index(kind)
        assert took[mine].sum() == pytest.approx(share * count * each, rel=0.01)
        assert shown["span_count"][mine].sum() == share * count
    assert shown["missing"] == 0


def test_a_long_run_has_a_minimap_of_how_busy_all_lanes_are():
    assert reduce(folded(log(span("a", "F", 0, 1))), {})["mini"] is None
    busy = [span("a", "F", i, i + (1.0 if i < 150 else 0.5)) for i in range(300)]
    mini = reduce(folded(log(*busy, span("a", "idle", 0, 300))), {})["mini"]
    assert mini[:149] == pytest.approx(1) and mini[151:299] == pytest.approx(0.5, abs=0.01)


def test_a_rank_that_awaits_a_message_is_idle():
    made = log(span("rank 0", "forward", 0.0, 6.0), span("rank 0", "receive", 6.0, 10.0))
    assert figures(made)["idle of total"] == "40 %"


def told(frame, *names):
    """Columns of a frame's messages, one tuple for each."""
    return list(zip(*(frame[f"move_{name}"].tolist() for name in names), strict=True))


def test_a_message_stands_under_the_lane_that_sent_it_and_the_one_that_received_it():
    made = log(
        span("rank 0", "F", 0, 2, mb=0), span("rank 1", "F", 2, 4, mb=0),
        Move(2.5, "rank 0", "rank 1", 8.0, 2.0, "mb=0"),
        Move(3.0, "rank 1", "elsewhere", 8.0, 2.0), Move(3.0, "rank 1", "rank 1", 8.0, 2.0),
        Move(3.5, "rank 0", "rank 1", 9.0, 3.0, "mb=0 grade=modelled"),
        lanes=["rank 0", "rank 1"],
    )  # fmt: skip
    frame = reduce(folded(made), {})
    assert told(frame, "row", "side", "other", "start", "stop", "bytes") == [
        (0, 0, 1, 2.0, 2.5, 8.0), (1, 1, 0, 2.0, 2.5, 8.0)
    ]  # fmt: skip
    assert [frame["tasks"][task] for task in frame["move_task"]] == ["mb 0", "mb 0"]
    assert "move_row" not in reduce(folded(pipeline(2, 2)), {})


def test_modelled_messages_are_told_where_none_was_measured():
    sent = Move(3.5, "rank 0", "rank 1", 9.0, 3.0, "grade=modelled")
    made = log(sent, span("rank 0", "F", 0, 2), span("rank 1", "F", 0, 2))
    assert told(reduce(folded(made), {}), "row", "bytes") == [(0, 9.0), (1, 9.0)]


def test_messages_too_many_for_a_screen_are_put_together_and_zooming_in_parts_them():
    count = 2 * MOST_MESSAGES
    moves = [Move(n + 0.5, "rank 0", "rank 1", 1.0, float(n)) for n in range(count)]
    frame = folded(log(*moves, span("rank 0", "F", 0, count), span("rank 1", "F", 0, count)))
    whole = reduce(frame, {})
    assert len(whole["move_row"]) <= MOST_MESSAGES
    assert whole["move_count"].sum() == 2 * count and whole["move_bytes"].sum() == 2 * count
    near = reduce(frame, {"start": 100.0, "stop": 120.0, "first": 0, "last": 2})
    assert set(near["move_count"].tolist()) == {1}


def test_links_whose_messages_stand_under_their_ends_have_no_lane_of_their_own():
    made = [
        span("link 0 to 1", "send", 2, 3), span("rank 0", "F", 0, 2), span("rank 1", "F", 3, 4),
        Level(1.0, "rank 1", "memory/weights", 5.0),
    ]  # fmt: skip
    apart = folded(log(*made))
    assert sorted(apart["names"]) == ["link 0 to 1", "rank 0", "rank 1"]
    frame = folded(log(*made, Move(3.0, "rank 0", "rank 1", 8.0, 2.0)))
    assert frame["names"] == ["rank 0", "rank 1"] and frame["lanes"] == 2
    assert frame["span_row"].tolist() == [0, 1] and frame["level_row"].tolist() == [1]
    assert frame["figures"] == apart["figures"]
