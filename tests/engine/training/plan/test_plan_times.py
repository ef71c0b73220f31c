"""The clock's walk against a longest path found otherwise, and what transfers do to it."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.core.errors import BadInput
from engine.training.plan.actions import Action, Kind, Plan, read
from engine.training.plan.schedule import Pipe
from engine.training.plan.schedules.interleaved_1f1b import Interleaved
from engine.training.plan.times import Costs, timed
from engine.training.plan.transfers import lower
from tests.engine.training.plan.plans import LOOSE, lowered, made, plans

SECONDS = st.floats(0.01, 10.0)


def longest(one: Plan, seconds: dict[Kind, float], transfer: float) -> float:
    """The longest path by recursion over what each pass needs, one action at a time."""
    before = {b: a for rank in one.ranks for a, b in zip(rank[:-1], rank[1:], strict=True)}
    there = {each for rank in one.ranks for each in rank}

    def needed(each: Action) -> Action | None:
        step = {Kind.F: -1, Kind.B: 1, Kind.I: 1}.get(each.kind)
        if step is None:
            return None
        kinds = (Kind.F,) if each.kind is Kind.F else (Kind.B, Kind.I)
        found = (Action(each.stage + step, kind, each.microbatch) for kind in kinds)
        return next((other for other in found if other in there), None)

    @cache
    def end(each: Action) -> float:
        ready = end(before[each]) if each in before else 0.0
        other = needed(each)
        if other is not None:
            across = one.rank_of[other.stage] != one.rank_of[each.stage]
            ready = max(ready, end(other) + transfer * across)
        return ready + seconds[each.kind] / one.chunks

    return max(end(each) for each in there)


@LOOSE
@given(plans(), SECONDS, SECONDS, SECONDS, st.floats(0, 3))
def test_the_walk_is_the_longest_path(one, f, i, w, transfer):
    seconds = {Kind.F: f, Kind.I: i, Kind.W: w, Kind.B: i + w}
    times = timed(one, Costs.even(one, f, i, w, transfer))
    assert times.end == pytest.approx(longest(one, seconds, transfer))


def test_of_a_group_going_round_the_first_alone_waits_where_that_is_asked_for():
    found = {}
    for chunks in (1, 2):
        one = Interleaved(chunks=chunks).plan(Pipe(4, 8))
        each = Costs.even(one, transfer=0.01)
        found[chunks] = [timed(one, costs).end for costs in (each, replace(each, first_alone=True))]
    assert found[1][0] == found[1][1], "with one chunk nothing goes round"
    # 2 (p v - 1) hops are waited for, or as many as there are ranks fewer.
    assert found[2][0] - found[2][1] == pytest.approx(4 * 0.01)


@LOOSE
@given(plans(least_ranks=2), st.floats(0, 3))
def test_transfers_that_hold_both_ranks_are_never_faster(one, transfer):
    beside = timed(one, Costs.even(one, transfer=transfer))
    written = lower(one, beside.start, beside.stop)
    held = timed(written, Costs.even(written, transfer=transfer))
    assert held.end >= beside.end - 1e-9


@pytest.mark.parametrize(("kind", "longer"), [("gpipe", 0.0), ("interleaved_1f1b", 2.0)])
def test_a_blocking_send_waits_for_a_receiver_in_the_middle_of_a_pass(kind, longer):
    one = made(kind, 2, 4)
    beside = timed(one, Costs.even(one)).end
    assert timed(lowered(one), Costs.even(one)).end == pytest.approx(beside + longer)


def test_no_rank_does_two_things_at_once_and_both_ends_of_a_transfer_agree():
    written = lowered(made("zb_v", 4, 8))
    times = timed(written, Costs.even(written, transfer=0.3))
    table = times.columns
    for rank in range(4):
        mine = slice(table.first[rank], table.first[rank + 1])
        assert (times.start[mine][1:] >= times.stop[mine][:-1] - 1e-12).all()
    ends = np.flatnonzero(table.partner >= 0)
    assert len(ends) and np.array_equal(times.start[ends], times.start[table.partner[ends]])
    assert np.allclose((times.stop - times.start)[ends], 0.3)


def test_a_plan_that_has_transfers_is_not_given_them_twice():
    written = lowered(made("1f1b", 2, 2))
    times = timed(written, Costs.even(written))
    with pytest.raises(BadInput, match="written out already"):
        lower(written, times.start, times.stop)


def test_a_plan_that_waits_for_itself_says_so():
    one = read("1F0 0F0 0B0 1B0")
    with pytest.raises(BadInput, match="waits at 1F0 .* for 0F0, which it does later itself"):
        timed(one, Costs.even(one))
