"""A pipeline on the virtual clock: its events agree with the plan, its costs and one another."""

import numpy as np
import pytest

from engine.cluster.pipeline import run
from engine.core.config import from_dict, to_dict, update
from engine.core.errors import BadInput
from engine.core.events import Level, Mark, Move, Span
from engine.core.log import Log
from engine.core.run import Run
from engine.training.pipeline.config import PipelineConfig
from engine.training.plan.actions import read
from engine.training.plan.bubble import of_log


def log(**changes) -> Log:
    dotted = {path.replace("__", "."): value for path, value in changes.items()}
    return Run.execute(run, update(PipelineConfig(), dotted)).log


def test_every_pass_is_a_span_of_its_rank_and_no_rank_does_two_things_at_once():
    spans = log(schedule="zb_h1").of(Span)
    assert len(spans) == 4 * 8 * 3
    for rank in range(4):
        mine = sorted((s for s in spans if s.lane == f"rank {rank}"), key=lambda s: s.start)
        stops, starts = [s.stop for s in mine[:-1]], [s.start for s in mine[1:]]
        assert all(b >= a - 1e-12 for a, b in zip(stops, starts, strict=True))
    assert {tuple(s.tag.split()) for s in spans if s.name == "W"} >= {("mb=7", "stage=3")}


def test_the_header_carries_the_plan_as_text_and_the_lanes_in_order():
    facts = log().opened.facts
    assert facts["lanes"] == [f"rank {rank}" for rank in range(4)]
    assert read(facts["plan"]).microbatches == 8


@pytest.mark.parametrize("blocking", [False, True])
def test_the_bubble_of_the_log_is_the_formula(blocking):
    found = of_log(log(wires__blocking=blocking))
    assert found.of_total == pytest.approx(3 / 11)
    assert found.of_ideal == pytest.approx(3 / 8)
    words = log().of(Mark)[-1].text
    assert "27.27% of the total" in words and "37.50% of the ideal" in words


def test_transfers_are_moves_whether_they_hold_the_ranks_or_not():
    slow = {"passes.boundary": 1e6, "wires.bandwidth": 1e9}
    beside = Run.execute(run, update(PipelineConfig(), slow)).log
    held = Run.execute(run, update(PipelineConfig(), {**slow, "wires.blocking": True})).log
    for one in (beside, held):
        moves = one.of(Move)
        assert len(moves) == 2 * 3 * 8
        assert all(m.bytes == 1e6 and m.time - m.start == pytest.approx(1e-3) for m in moves)
    names = {span.name for span in held.of(Span)}
    assert {"send", "receive"} <= names
    assert held.duration > beside.duration


def test_links_between_nodes_are_their_own():
    near = log(passes__boundary=1e6, wires__bandwidth=1e9)
    far = log(
        passes__boundary=1e6, wires__bandwidth=1e9, wires__ranks_per_node=2,
        wires__between_bandwidth=1e8,
    )  # fmt: skip
    slow = {(m.source, m.target) for m in far.of(Move) if m.time - m.start > 5e-3}
    assert slow == {("rank 1", "rank 2"), ("rank 2", "rank 1")}
    assert far.duration > near.duration


def test_memory_follows_the_microbatches_in_flight():
    levels = [e for e in log().of(Level) if e.name == "memory/activations"]
    for rank in range(4):
        held = [e.value for e in levels if e.lane == f"rank {rank}"]
        assert max(held) == pytest.approx((4 - rank) * 1e9)
        assert held[-1] == pytest.approx(0)
    assert {e.name for e in log().of(Level)} >= {"memory/weights", "memory/gradients"}


def test_a_plan_over_the_limit_is_drawn_and_told():
    one = log(schedule="gpipe", memory_limit=4.0)
    assert one.opened.facts["memory_limit"] == 2e9 + 2e9 + 4e9
    told = [mark.text for mark in one.of(Mark) if mark.name == "memory limit"]
    assert len(told) == 4 and "4 are allowed" in told[0]
    assert not [m for m in log(memory_limit=4.0).of(Mark) if m.name == "memory limit"]


def test_a_slow_rank_slows_the_step():
    assert log(slow_rank=2, slow_by=2.0).duration > 1.5 * log().duration
    with pytest.raises(BadInput, match="no rank 4 among 4"):
        log(slow_rank=4, slow_by=2.0)


def test_the_end_of_a_step_waits_where_it_has_to():
    facts = {"passes__update": 0.02, "passes__reduce": 0.01, "schedule": "zb_h2"}
    apart, together = log(**facts), log(**facts, together=True)
    for one, same in ((apart, False), (together, True)):
        starts = [span.start for span in one.of(Span) if span.name == "optimiser"]
        assert len(starts) == 4
        assert (np.ptp(starts) < 1e-12) == same
    assert of_log(apart).of_longest_rank == pytest.approx(0, abs=1e-9)


def test_a_written_plan_that_is_stuck_stops_the_run_in_words():
    with pytest.raises(BadInput, match="plan is stuck: rank 0 waits at 0B0"):
        log(
            schedule="as_written", schedule__text="0F0 0B0 0F1 0B1; 1F1 1B1 1F0 1B0", ranks=2,
            microbatches=2,
        )  # fmt: skip


def test_what_one_run_prints_another_runs_again_transfers_and_ends_included():
    knobs = {"passes__update": 0.02, "passes__reduce": 0.01, "wires__latency": 0.001}
    first = log(schedule="zb_h1", wires__blocking=True, **knobs)
    text = first.opened.facts["plan"]
    assert "SEND_F" in text and "STEP" in text
    again = log(schedule="as_written", schedule__text=text.replace("\n", "; "), **knobs)
    assert again.of(Span) == first.of(Span)
    assert again.of(Move) == first.of(Move)


def test_knobs_of_before_choose_the_executor():
    old = update(PipelineConfig(), {"execution": "mesh", "execution.model.layers": 3})
    assert old == update(PipelineConfig(), {"executor": "mesh", "executor.model.layers": 3})
    saved = {**to_dict(old), "execution": to_dict(old.executor)}
    del saved["executor"]
    assert from_dict(PipelineConfig, saved) == old
