"""The checker: every schedule passes, and whatever is done to one is refused in words."""

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from engine.core.errors import BadInput
from engine.training.plan.actions import Action, Kind, Plan, plan, read
from engine.training.plan.check import check, checked
from engine.training.plan.columns import columns
from engine.training.plan.memory import peaks
from engine.training.plan.times import Costs, timed
from tests.engine.training.plan.plans import LOOSE, lowered, plans

NEEDS = {Kind.B: Kind.F, Kind.I: Kind.F, Kind.W: Kind.I}


@LOOSE
@given(plans())
def test_every_schedule_can_be_run_with_sends_that_block(one):
    assert check(one) == []
    assert check(lowered(one)) == []


@LOOSE
@given(plans(), st.data())
def test_a_pass_left_out_is_named(one, data):
    rows = [list(rank) for rank in one.ranks]
    row = data.draw(st.sampled_from(rows))
    gone = row.pop(data.draw(st.integers(0, len(row) - 1)))
    faults = check(plan(rows))
    assert faults
    if one.microbatches > 1 and one.stages > 1:
        assert any(f"microbatch {gone.microbatch}" in f or "stage" in f for f in faults)


@LOOSE
@given(plans(), st.data())
def test_a_pass_done_twice_is_named(one, data):
    rows = [list(rank) for rank in one.ranks]
    row = data.draw(st.sampled_from(rows))
    again = data.draw(st.sampled_from(row))
    row.append(again)
    faults = check(plan(rows))
    assert f"microbatch {again.microbatch} on stage {again.stage} stands 2 times" in faults[0]


@LOOSE
@given(plans(), st.data())
def test_a_pass_before_what_it_needs_is_named(one, data):
    rows = [list(rank) for rank in one.ranks]
    row = data.draw(st.sampled_from(rows))
    late = data.draw(st.sampled_from([each for each in row if each.kind in NEEDS]))
    needed = Action(late.stage, NEEDS[late.kind], late.microbatch)
    row.remove(late)
    row.insert(row.index(needed), late)
    assert any(f"{late} comes before {needed}" in fault for fault in check(plan(rows)))


@LOOSE
@given(plans(least_ranks=2), st.data())
def test_a_pass_on_another_rank_is_named(one, data):
    rows = [list(rank) for rank in one.ranks]
    source, target = data.draw(st.permutations(range(len(rows))))[:2]
    moved = rows[source].pop()
    rows[target].append(moved)
    assume(any(each.stage == moved.stage for each in rows[source]))
    assert f"stage {moved.stage} is on ranks" in check(plan(rows))[0]


@LOOSE
@given(plans(least_ranks=2), st.data())
def test_a_transfer_without_its_other_end_is_named(one, data):
    rows = [list(rank) for rank in lowered(one).ranks]
    ends = [(rank, each) for rank, row in enumerate(rows) for each in row if "_" in each.kind.value]
    rank, gone = data.draw(st.sampled_from(ends))
    rows[rank].remove(gone)
    words = {Kind.SEND_F: "RECV_F", Kind.SEND_B: "RECV_B", Kind.RECV_F: "RECV_F"}
    faults = check(plan(rows))
    assert any(words.get(gone.kind, "RECV_B") in fault for fault in faults)


@LOOSE
@given(plans(), st.data())
def test_any_two_actions_swapped_either_run_or_are_refused_in_words(one, data):
    """What the checker lets pass can be timed to its end; what it refuses it can say."""
    start = lowered(one) if data.draw(st.booleans()) else one
    rows = [list(rank) for rank in start.ranks]
    row = data.draw(st.sampled_from([row for row in rows if len(row) > 1]))
    a, b = (data.draw(st.integers(0, len(row) - 1)) for _ in range(2))
    row[a], row[b] = row[b], row[a]
    swapped = plan(rows)
    faults = check(swapped)
    if faults:
        assert all(" " in fault and "rank" in fault for fault in faults)
    else:
        assert timed(swapped, Costs.even(swapped)).end > 0


def test_a_circle_of_waiting_is_told_round():
    words = check(read("0F0 0F1 0B1 0B0\n1F0 1B0 1F1 1B1"))
    assert words == []
    words = check(read("0F0 0B0 0F1 0B1\n1F1 1B1 1F0 1B0"))
    assert words == [
        "plan is stuck: rank 0 waits at 0B0 (its action 2) for 1B0 of rank 1; "
        "rank 1 waits at 1F1 (its action 1) for 0F1 of rank 0"
    ]


def test_two_ranks_that_both_send_first_are_stuck():
    crossed = (
        "0F0 0SEND_F0 0F1 0SEND_F1 0RECV_B0 0B0 0RECV_B1 0B1\n"
        "1RECV_F0 1F0 1B0 1SEND_B0 1RECV_F1 1F1 1B1 1SEND_B1"
    )
    assert (
        "rank 0 waits at 0SEND_F1 (its action 4) for 1RECV_F1 of rank 1" in check(read(crossed))[0]
    )


@LOOSE
@given(plans())
def test_the_memory_limit_is_kept_at_the_peak_and_not_below(one):
    most = float(peaks(columns(one), one.chunks).max())
    assert check(one, limit=most) == []
    words = check(one, limit=most - 0.1)
    assert words and "are allowed" in words[0]


def test_nothing_comes_after_a_step():
    assert check(read("0F0 0B0 0F1 0STEP 0B1")) == ["0B1 comes after 0STEP on rank 0"]
    assert check(read("0F0 0B0 0F1 0B1 0REDUCE_GRAD 0STEP")) == []


def test_an_empty_plan_says_what_to_write():
    assert "0F0 0B0" in check(Plan(()))[0]
    with pytest.raises(BadInput, match=r"stands 2 times.*and 2 more"):
        checked(read("0F0 0F0 0B0 0B0"))


def test_ranks_without_number_are_refused_before_tables_are_made_of_them() -> None:
    with pytest.raises(BadInput, match="20000 ranks, a line each; at most"):
        read("0F0\n" * 20_000)
    said, *_ = check(read("0F0 0B0\n" * 2000))
    assert said.startswith("stage 0 is on ranks 0, 1, 2") and "and 1988 more" in said
