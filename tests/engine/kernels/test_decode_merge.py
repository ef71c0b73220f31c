"""Partial attention merges exactly, in any order, by natural logarithms; and a plan's does."""

import math

import numpy as np
import pytest
import torch

from engine.kernels.paged_attention.cases import made
from engine.kernels.paged_attention.decode_cpu import batch_of, run_plan
from engine.kernels.paged_attention.merge import merge, natural
from engine.kernels.paged_attention.policies.fixed_split import FixedSplit
from engine.kernels.paged_attention.policies.lean import Lean
from engine.kernels.paged_attention.policies.per_head import PerHead
from engine.kernels.paged_attention.reference import paged_attention

DRAW = torch.Generator().manual_seed(3)
SCORES_NK = 30 * torch.randn(4, 90, generator=DRAW, dtype=torch.float64)
VALUES_KE = torch.randn(90, 5, generator=DRAW, dtype=torch.float64)


def part(first: int, last: int):
    """Attention over keys first … last and its log-sum-exp."""
    scores_NK = SCORES_NK[:, first:last]
    return scores_NK.softmax(-1) @ VALUES_KE[first:last], torch.logsumexp(scores_NK, -1)


def close(one, other):
    for a, b in zip(one, other, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("cut", [1, 13, 89])
def test_two_parts_merge_to_the_whole(cut):
    close(merge(*part(0, cut), *part(cut, 90)), part(0, 90))


def test_merging_is_associative_and_commutative():
    a, b, c = part(0, 20), part(20, 21), part(21, 90)
    close(merge(*merge(*a, *b), *c), merge(*a, *merge(*b, *c)))
    close(merge(*a, *b), merge(*b, *a))


def test_an_empty_part_changes_nothing():
    o, lse = part(0, 90)
    empty = torch.zeros_like(o), torch.full_like(lse, -math.inf)
    close(merge(o, lse, *empty), (o, lse))
    nothing_o, nothing_lse = merge(*empty, *empty)
    assert (nothing_o == 0).all() and (nothing_lse == -math.inf).all()


def test_sums_are_natural_logarithms_and_base_two_is_converted():
    o, lse = part(0, 40)
    other_o, other_lse = part(40, 90)
    close(merge(o, natural(lse / math.log(2)), other_o, other_lse), part(0, 90))
    wrong, _ = merge(o, lse / math.log(2), other_o, other_lse / math.log(2))
    assert (wrong - part(0, 90)[0]).abs().max() > 0.01


def planned(split, workers: int, rescale: bool = True, members: int = 1):
    given = made(8, 2, 64, [1, 1, 1], [1500, 40, 700], 0, torch.float32)
    start, context = (given[name].numpy() for name in ("query_start_B1", "context_B"))
    _, batch = batch_of(2, start, context, 0, 64, members)
    found, trace = run_plan(
        split.plan(batch, workers), given["q_THD"], given["k_PSGD"], given["v_PSGE"],
        given["block_table_BP"].numpy(), start[:-1], scale=given["scale"], rescale=rescale,
    )  # fmt: skip
    return found, paged_attention(**given), trace


@pytest.mark.parametrize("split", [PerHead(), FixedSplit(parts=4), Lean()], ids=lambda s: s.kind)
@pytest.mark.parametrize(("workers", "members"), [(1, 1), (2, 2), (7, 1)])
def test_any_cut_gives_the_same_attention(split, workers, members):
    found, truth, trace = planned(split, workers, members=members)
    torch.testing.assert_close(found, truth, rtol=1e-5, atol=2e-6)
    assert (np.diff(trace.item_I2, axis=1) > 0).all() and (trace.item_I2 > 0).all()
    assert set(trace.worker_I) <= set(range(workers))


def test_merging_without_rescaling_is_wrong():
    found, truth, _ = planned(FixedSplit(parts=4), 2, rescale=False)
    assert (found - truth).abs().max() > 0.01
