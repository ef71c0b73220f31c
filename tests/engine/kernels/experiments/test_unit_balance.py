"""Balanced attention: the polynomial, exactness whatever τ is, counts by hand, the pipeline."""

import pytest
import torch

from engine.core.config import update
from engine.core.errors import BadInput
from engine.hardware import device
from engine.kernels.experiments.unit_balance.config import BalanceConfig, Softmax
from engine.kernels.experiments.unit_balance.exp2 import exp2, on_multiply_add, steps
from engine.kernels.experiments.unit_balance.pipeline import (
    Pipeline,
    Step,
    rates,
    utilisation,
    waves,
)
from engine.kernels.experiments.unit_balance.tiles_cpu import attention, root_mean_square, truth

B200 = device("b200-sxm")


@pytest.mark.parametrize(("degree", "error"), [(1, 4e-2), (2, 2.2e-3), (3, 8.9e-5), (5, 3e-7)])
def test_the_polynomial_is_as_near_as_its_degree_allows(degree, error):
    x = torch.linspace(-100, 60, 100_001)
    true = torch.exp2(x.double())
    found = exp2(x, degree).double()
    assert float(((found - true) / true).abs().max()) <= error
    whole = torch.arange(-126.0, 127.0)
    assert torch.equal(exp2(whole, degree), torch.exp2(whole)), "powers of two are exact"
    assert float(exp2(torch.tensor([-1e30, float("-inf")]), degree).max()) <= 2.0**-126


def test_the_share_is_spread_evenly():
    assert int(on_multiply_add(128, 0.25).sum()) == 32
    assert not on_multiply_add(128, 0.0).any() and on_multiply_add(128, 1.0).all()
    assert on_multiply_add(8, 0.25).tolist() == [False, False, False, True] * 2


def operands(tokens=256, dim=32, spread=3.0, seed=0):
    draw = torch.Generator().manual_seed(seed)
    q, k, v = (torch.randn(2, tokens, dim, generator=draw) for _ in range(3))
    return q * spread, k, v


@pytest.mark.parametrize("tau", [0.0, 1.0, 8.0, 40.0])
def test_it_is_softmax_whatever_tau_is(tau):
    given = operands()
    found, _ = attention(*given, Softmax(tau=tau, share=0.25, group=1))
    assert root_mean_square(found, truth(*given)) < 3e-3


def test_scores_that_only_grow_are_still_exact():
    """Each block's scores outgrow all before: a reference that never moved would overflow."""
    q, k, v = operands()
    k = k.abs() * torch.linspace(0.1, 30, 256)[:, None]
    found, counts = attention(q.abs(), k, v, Softmax(tau=8.0))
    assert torch.isfinite(found).all() and counts.rescaled > 0
    assert root_mean_square(found, truth(q.abs(), k, v)) < 3e-3


def test_operations_are_counted_as_by_hand():
    given = operands(tokens=256, dim=32)
    _, counts = attention(*given, Softmax(tau=0.0, share=0.25, degree=3, group=32))
    scores, rows = 2 * 256 * 256, 2 * 256
    assert counts.maximum == counts.scale == counts.total == counts.convert == scores
    assert counts.polynomial == scores // 4 * steps(3) and steps(3) == 8
    assert counts.special == scores * 3 // 4 + rows  # one more a row when the accumulator scales
    assert counts.rescale == rows * 33  # second block only: 32 numbers and the sum
    assert (counts.looked, counts.rescaled) == (16, 16)
    assert counts.operations() == 4 * scores + counts.polynomial + counts.special + counts.rescale


def steps_of(**changes) -> list[Step]:
    return list(Pipeline(update(BalanceConfig(), changes), B200, 0.5).steps(16))


def test_a_unit_serves_one_step_at_a_time_and_ends_in_order():
    steps_taken = steps_of()
    assert [s.stop for s in steps_taken] == sorted(s.stop for s in steps_taken)
    for unit in {s.unit for s in steps_taken}:
        mine = sorted((s.start, s.stop) for s in steps_taken if s.unit == unit)
        assert all(a[1] <= b[0] + 1e-15 for a, b in zip(mine, mine[1:], strict=False))


def test_a_block_goes_through_its_units_in_turn():
    steps_taken = steps_of()
    for tile in (0, 1):
        for block in range(16):
            mine = [s for s in steps_taken if (s.tile, s.block) == (tile, block)]
            first = next(s for s in mine if s.name == "QKᵀ" and s.unit == "matrix")
            last = next(s for s in mine if s.name == "PV" and s.unit == "matrix")
            between = [s for s in mine if s.unit in ("exponential", "multiply-add")]
            assert all(first.stop < s.start and s.stop < last.start for s in between)


def test_every_mechanism_moves_utilisation_the_way_it_must():
    both, alone = (utilisation(steps_of(ping_pong=p), B200) for p in (True, False))
    slow = utilisation(steps_of(**{"softmax.share": 0.0}), B200)
    assert alone < 0.6 * both and slow < both
    assert both < B200.efficiency["bfloat16"]
    assert utilisation(steps_of(handoff=0.0), B200) > both


def test_waves_leave_the_last_one_partly_idle():
    config = BalanceConfig(modelled_tokens=256 * 149, modelled_heads=1)
    assert waves(config, B200) == pytest.approx(149 / 296)


def test_a_sheet_without_the_facts_is_named():
    with pytest.raises(BadInput, match="cache_bandwidth.shared"):
        rates(device("t4"))
