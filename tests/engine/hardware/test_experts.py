"""Fused experts: rows dealt by popularity, weights of those reached, imbalance between ranks."""

import pytest

from engine.core.errors import BadInput
from engine.hardware import device
from engine.hardware.cost.constants import constants, of_device
from engine.hardware.cost.experts import experts, loads

H100 = device("h100-sxm")
MIXTRAL = (4096, 14336, 2, 8, 1, 1)


def layer(power: float, tokens: int, *, ranks: int = 1, dtype: str = "bfloat16") -> float:
    shape = (*MIXTRAL[:5], ranks, power, tokens)
    return experts(H100, of_device("h100-sxm"), *shape, dtype).seconds.item()


def test_every_row_goes_to_an_expert_and_none_twice():
    for power in (0.0, 1.2, 2.0):
        for tokens in (1, 7, 64, 4096):
            rows = loads(tokens, 8, 128, 1, power)
            assert rows.sum() == pytest.approx(8 * tokens, rel=0.02)
            assert rows.max() <= tokens and len(rows) == 128


def test_the_busiest_rank_has_at_least_its_share():
    for power in (0.0, 1.2):
        assert loads(512, 8, 128, 8, power).sum() >= 512 * 8 / 8 - 1e-6


def test_a_few_tokens_read_the_experts_they_reach():
    moved = 3 * 4096 * 14336 * 2 / H100.bandwidth
    assert 2 * moved < layer(0, 1) < layer(0, 2) < layer(0, 4)
    assert layer(0, 4) == pytest.approx(layer(0, 8), rel=0.1), "all eight are reached by four"
    assert layer(0, 4, dtype="float8") < layer(0, 4)


def test_a_rank_whose_kernels_leave_others_rows_out_moves_fewer():
    found = of_device("h100-sxm")
    part = found.experts.model_copy(update={"others": 0.0})
    shape = (*MIXTRAL[:5], 8, 0.0, 16384)
    own = experts(H100, found.model_copy(update={"experts": part}), *shape, "bfloat16")
    saved = 2 * (7 / 8 * 16384 * 2) * (2 * 4096 + 3 * 14336) / H100.bandwidth
    assert own.roofs["bandwidth"].item() == pytest.approx(
        experts(H100, found, *shape, "bfloat16").roofs["bandwidth"].item()
        - found.experts.passes * saved
    )
    alone = (*MIXTRAL[:5], 1, 0.0, 16384)
    same = experts(H100, found.model_copy(update={"experts": part}), *alone, "bfloat16")
    assert same.seconds.item() == pytest.approx(layer(0, 16384))


def test_imbalance_makes_many_tokens_slower_where_experts_lie_apart():
    assert layer(1.2, 8192, ranks=8) > 1.5 * layer(0, 8192, ranks=8)
    assert layer(0, 8192, ranks=8) < layer(0, 8192)


def test_constants_without_experts_say_so():
    with pytest.raises(BadInput, match="none of experts"):
        experts(H100, constants("operators"), *MIXTRAL, 0.0, 4, "bfloat16")
