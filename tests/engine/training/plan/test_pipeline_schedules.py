"""Schedules against closed forms, memory bounds and the published bubble tables."""

import tomllib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.core.errors import BadInput
from engine.core.paths import dataset
from engine.training.plan.actions import Plan
from engine.training.plan.bubble import Bubble, bubble
from engine.training.plan.columns import B, F, I, W, columns
from engine.training.plan.memory import peaks
from engine.training.plan.schedule import Pipe, PipelineSchedule
from engine.training.plan.schedules.as_written import AsWritten
from engine.training.plan.schedules.by_hand import GPipe, ZeroBubbleH1, ZeroBubbleH2
from engine.training.plan.schedules.interleaved_1f1b import Interleaved
from engine.training.plan.schedules.one_forward_one_backward import OneForwardOneBackward
from engine.training.plan.schedules.zb_v import ZeroBubbleV
from engine.training.plan.schedules.zb_v_greedy import ZeroBubbleVGreedy
from engine.training.plan.schedules.zero_bubble_search import ZeroBubbleSearch
from engine.training.plan.times import Costs, timed
from tests.engine.training.plan.plans import LOOSE

SIZES = [(2, 4), (4, 4), (4, 8), (4, 16), (8, 32)]
TABLE = tomllib.loads(dataset("zero_bubble.toml").read_text())["rows"]


def of(one: Plan, costs: Costs) -> Bubble:
    times = timed(one, costs)
    passes = np.isin(times.columns.kind, [F, B, I, W])
    return bubble(times.columns.rank[passes], times.start[passes], times.stop[passes])


def found(policy: PipelineSchedule, pipe: Pipe) -> Bubble:
    one = policy.plan(pipe)
    costs = Costs.even(one, pipe.forward, pipe.backward_input, pipe.backward_weight, pipe.transfer)
    return of(one, costs)


@pytest.mark.parametrize(("p", "m"), SIZES)
@pytest.mark.parametrize("times", [(1, 1, 1), (1.3, 1.7, 0.4)])
def test_gpipe_and_1f1b_have_the_bubble_of_the_formula(p, m, times):
    for policy in (GPipe(), OneForwardOneBackward()):
        one = found(policy, Pipe(p, m, *times))
        assert one.of_total == pytest.approx((p - 1) / (m + p - 1))
        assert one.of_ideal == pytest.approx((p - 1) / m)


@pytest.mark.parametrize(("p", "m"), SIZES)
@pytest.mark.parametrize("v", [1, 2, 3])
def test_interleaving_divides_the_bubble_by_the_chunks(p, m, v):
    one = found(Interleaved(chunks=v), Pipe(p, m))
    assert one.of_ideal == pytest.approx((p - 1) / (v * m))
    assert one.of_total == pytest.approx((p - 1) / (v * m + p - 1))


@pytest.mark.parametrize(("p", "m"), [(2, 4), (4, 8), (4, 16), (8, 32)])
def test_zero_bubble_orders_by_hand(p, m):
    equal = Pipe(p, m)
    assert found(ZeroBubbleH1(), equal).of_ideal == pytest.approx((p - 1) / (3 * m))
    assert found(ZeroBubbleH2(), equal).of_longest_rank == pytest.approx(0)
    assert found(ZeroBubbleV(), equal).of_longest_rank == pytest.approx(0)
    f, i, w = 1.2, 1.1, 0.8
    one = found(ZeroBubbleH1(), Pipe(p, m, f, i, w))
    assert one.seconds - m * (f + i + w) == pytest.approx((p - 1) * (f + i - w))


@pytest.mark.parametrize(("p", "m"), [(2, 4), (4, 8), (8, 32)])
def test_activations_held(p, m):
    def most(policy: PipelineSchedule) -> float:
        one = policy.plan(Pipe(p, m))
        return float(peaks(columns(one), one.chunks).max())

    assert most(GPipe()) == m
    assert most(OneForwardOneBackward()) == p
    assert most(ZeroBubbleH1()) == p
    assert most(ZeroBubbleH2()) == 2 * p - 1
    assert most(ZeroBubbleV()) == p


def test_interleaving_wants_whole_rounds_and_says_which():
    with pytest.raises(BadInput, match="take 8 or 12"):
        Interleaved().plan(Pipe(4, 10))
    with pytest.raises(BadInput, match="take 4$"):
        Interleaved().plan(Pipe(4, 3))


@pytest.mark.parametrize("row", TABLE, ids=lambda row: f"{row['model']}-{row['microbatches']}")
def test_the_published_bubbles_follow_from_the_published_pass_times(row):
    """36 figures to four decimals: 1F1B, ZB-H1 and ZB-H2 of twelve settings."""
    pipe = pipe_of(row)
    assert round(found(OneForwardOneBackward(), pipe).of_longest_rank, 4) == row["1f1b"]
    assert round(found(ZeroBubbleH1(), pipe).of_longest_rank, 4) == row["zb_h1"]
    assert round(found(ZeroBubbleH2(), pipe).of_longest_rank, 4) == row["zb_h2"]


@pytest.mark.parametrize("row", TABLE, ids=lambda row: f"{row['model']}-{row['microbatches']}")
def test_the_search_is_no_worse_than_the_orders_by_hand_in_their_memory(row):
    p = row["ranks"]
    for limit, by_hand in ((p, ZeroBubbleH1()), (2 * p - 1, ZeroBubbleH2())):
        pipe = pipe_of(row, limit=float(limit))
        one = ZeroBubbleSearch().plan(pipe)
        assert peaks(columns(one), 1).max() <= limit
        ours = found(ZeroBubbleSearch(), pipe).of_longest_rank
        assert ours <= found(by_hand, pipe).of_longest_rank + 1e-12


@pytest.mark.parametrize("limit", [1.0, 1.5, 2.0, 3.0, 5.0, 9.0])
@pytest.mark.parametrize("kept", [0.4, 1.0])
def test_the_search_keeps_any_limit(limit, kept):
    pipe = Pipe(4, 10, 1.0, 1.3, 0.6, 0.1, limit, kept)
    one = ZeroBubbleSearch().plan(pipe)
    assert peaks(columns(one), 1, kept).max() <= limit + 1e-9
    assert of(one, Costs.even(one, 1.0, 1.3, 0.6, 0.1)).seconds > 0
    with pytest.raises(BadInput, match="one microbatch takes 1"):
        ZeroBubbleSearch().plan(Pipe(4, 10, limit=0.5))


@pytest.mark.parametrize(("p", "m"), [(2, 4), (4, 8), (4, 3), (8, 24)])
def test_the_greedy_v_of_equal_passes_is_the_order_by_hand_but_for_weights(p, m):
    ours, by_hand = ZeroBubbleVGreedy().plan(Pipe(p, m)), ZeroBubbleV().plan(Pipe(p, m))
    for rank, known in zip(ours.ranks, by_hand.ranks, strict=True):
        assert [a for a in rank if a.kind != "W"] == [a for a in known if a.kind != "W"]
    if m >= 2 * p - 1:
        assert found(ZeroBubbleVGreedy(), Pipe(p, m)).of_longest_rank == pytest.approx(0)


@pytest.mark.parametrize("row", TABLE, ids=lambda row: f"{row['model']}-{row['microbatches']}")
def test_the_greedy_v_waits_less_than_the_order_by_hand_for_published_pass_times(row):
    pipe = pipe_of(row)
    one = ZeroBubbleVGreedy().plan(pipe)
    assert peaks(columns(one), 2).max() <= row["ranks"]
    ours = found(ZeroBubbleVGreedy(), pipe).of_longest_rank
    assert ours < found(ZeroBubbleV(), pipe).of_longest_rank


@given(
    st.integers(1, 9), st.integers(1, 25), st.floats(0.5, 2), st.floats(0.05, 1.5),
    st.sampled_from([0.0, 0.05, 0.5]), st.sampled_from([0.3, 1.0]),
)  # fmt: skip
@LOOSE
def test_the_greedy_v_comes_to_an_end_in_the_memory_of_1f1b(p, m, i, w, transfer, kept):
    pipe = Pipe(p, m, 1.0, i, w, transfer, kept=kept)
    one = ZeroBubbleVGreedy().plan(pipe)
    assert len(one) == 6 * p * m and peaks(columns(one), 2, kept).max() <= p + 1e-9
    assert np.isfinite(found(ZeroBubbleVGreedy(), pipe).seconds)


def test_a_written_plan_is_checked_before_it_is_taken():
    text = "0F0 0F1 0B0 0B1; 1F0 1B0 1F1 1B1"
    assert AsWritten(text=text).plan(Pipe(2, 2)).microbatches == 2
    with pytest.raises(BadInput, match="ranks=2 and microbatches=2"):
        AsWritten(text=text).plan(Pipe(4, 8))
    assert AsWritten(text="0F0,,0F1,0B0,0B1\n").plan(Pipe(1, 2)).microbatches == 2
    with pytest.raises(BadInput, match="0B0 comes before 0F0"):
        AsWritten(text="0B0 0F0").plan(Pipe(1, 1))


def pipe_of(row: dict, limit: float = float("inf")) -> Pipe:
    times = (row["forward"], row["backward_input"], row["backward_weight"], row["transfer"])
    return Pipe(row["ranks"], row["microbatches"], *times, limit)


@pytest.mark.parametrize(("p", "m"), [(8, 2), (8, 4), (8, 8), (16, 4), (16, 16)])
@pytest.mark.parametrize("times", [(1.0, 1.0, 0.6), (1.0, 1.2, 0.5), (1.0, 0.9, 0.7)])
def test_few_microbatches_take_what_the_paper_says(p, m, times):
    """arXiv 2401.10241, table 9's setting: m <= p, no transfers, T_W < T_B."""
    f, i, w = times
    pipe = Pipe(p, m, f, i, w, limit=2.0 * p)
    assert found(OneForwardOneBackward(), pipe).seconds == pytest.approx((m + p - 1) * (f + i + w))
    assert found(ZeroBubbleSearch(), pipe).seconds == pytest.approx((m + p - 1) * (f + i) + w)
