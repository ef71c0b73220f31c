"""Every tile of a decode step is in one item of one worker, however it is cut."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.core.errors import BadInput
from engine.kernels.paged_attention.plan import Batch, even, plan
from engine.kernels.paged_attention.policies.fixed_split import FixedSplit, chosen
from engine.kernels.paged_attention.policies.lean import Lean
from engine.kernels.paged_attention.policies.per_head import PerHead

SPLITS = (
    PerHead(), FixedSplit(), FixedSplit(parts=3), Lean(), Lean(runs=3), Lean(whole=True),
)  # fmt: skip


def batch(contexts, kv_heads=2, tile=16, **choices) -> Batch:
    return Batch(np.array(contexts, np.int64), kv_heads, tile, **choices)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.integers(0, 300), min_size=1, max_size=5),
    st.integers(1, 5),
    st.integers(1, 9),
    st.sampled_from(SPLITS),
    st.sampled_from([1, 2]),
    st.sampled_from([0, 40]),
)
def test_items_cover_every_visible_key_of_every_head_once(
    contexts, kv_heads, workers, split, members, window
):
    asked = batch(contexts, kv_heads, members=members, window=window)
    made = split.plan(asked, workers)
    seen = {
        (row, head): np.zeros(max(contexts), int)
        for row in range(len(contexts))
        for head in range(0, kv_heads, members)
    }
    for row, head, begin, end in zip(
        made.row_I, made.head_I, made.begin_I, made.end_I, strict=True
    ):
        assert begin < end
        seen[row, head][begin:end] += 1
    for (row, _), counts in seen.items():
        low = max(0, contexts[row] - window) if window else 0
        assert (counts[low : contexts[row]] == 1).all() and counts.sum() == contexts[row] - low
    assert made.first_K1[0] == 0 and made.first_K1[-1] == len(made.row_I)


@pytest.mark.parametrize("split", SPLITS)
def test_the_partial_results_of_a_head_are_merged_and_nothing_else(split):
    made = split.plan(batch([300, 17, 129], 3), 5)
    split_heads = {}
    for row, head, part in zip(made.row_I, made.head_I, made.part_I, strict=True):
        if part >= 0:
            split_heads.setdefault((row, head), []).append(part)
    found = {
        (row, head): list(range(first, last))
        for row, head, (first, last) in zip(made.row_M, made.head_M, made.parts_M2, strict=True)
    }
    assert found == split_heads
    assert sorted(p for parts in found.values() for p in parts) == list(range(made.parts))


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.integers(0, 5000), min_size=1, max_size=8),
    st.integers(1, 9),
    st.integers(1, 13),
    st.integers(1, 3),
)
def test_lean_gives_every_worker_as_many_tiles_but_for_one(contexts, kv_heads, workers, runs):
    made = Lean(runs=runs).plan(batch(contexts, kv_heads), workers)
    tiles = [
        int(made.tiles_I[a:b].sum())
        for a, b in zip(made.first_K1[:-1], made.first_K1[1:], strict=True)
    ]
    assert len(tiles) == workers * runs and max(tiles) - min(tiles) <= 1


def test_even_pieces_differ_by_one():
    assert even(10, 4).tolist() == [0, 2, 5, 7, 10]
    assert even(2, 4).tolist() == [0, 0, 1, 1, 2]


def test_the_fixed_split_is_chosen_by_how_full_the_last_wave_is():
    assert chosen(heads=100, tiles=64, workers=108) == 1  # nearly full already
    assert chosen(heads=1, tiles=64, workers=8) == 7  # 7 of 8 is good enough, and one part less
    assert chosen(heads=32, tiles=64, workers=108) == 3  # 96 of 108; six fill 192 of 216 no better
    assert chosen(heads=1, tiles=1, workers=108) == 1  # nothing to split


def test_cuts_that_leave_tiles_out_are_refused():
    with pytest.raises(BadInput, match="must rise from 0 to 4"):
        plan(batch([32], 2), np.array([0, 3]), 1, fused=False)


def test_runs_that_may_not_begin_within_a_head_cut_none_and_are_not_equal():
    asked = batch([900, 40, 40])
    whole = Lean(whole=True).plan(asked, 4)
    assert whole.parts == 0
    assert set(whole.tiles_I.tolist()) == set(asked.tiles_S.tolist())
