"""The cost model's times: roofs, waves and launches where they must bind, and its interval."""

import pytest

from engine.core.errors import BadInput
from engine.hardware import device
from engine.hardware.cost import curves
from engine.hardware.cost.constants import constants, shipped
from engine.hardware.cost.model import CostModel

A100, H100, B200 = (CostModel(device(name)) for name in ("a100-sxm-80gb", "h100-sxm", "b200-sxm"))


def test_a_few_rows_are_bound_by_memory_and_many_by_arithmetic():
    assert A100.matmul(1, 8192, 8192).roof == "bandwidth"
    assert A100.matmul(8192, 8192, 8192).roof == "bfloat16"
    assert A100.matmul(1, 256, 256).roof == "launch"


def test_no_operator_is_faster_than_its_sheet_allows():
    for model in (A100, H100, B200):
        for m in (1, 17, 128, 1000, 8192):
            flops, moved = 2.0 * m * 4096 * 8192, 2.0 * 4096 * 8192
            best = max(flops / model.device.peak("bfloat16"), moved / model.device.bandwidth)
            assert model.matmul(m, 4096, 8192).seconds > best


def test_one_tile_more_than_a_wave_costs_a_wave():
    """A100 has 108 processors: 27 · 4 tiles of 128 × 256 fill them, a row more begins a wave."""
    full = A100.matmul(27 * 128, 1024, 4096).seconds
    more = A100.matmul(27 * 128 + 1, 1024, 4096).seconds
    less = A100.matmul(27 * 128 - 127, 1024, 4096).seconds
    assert less == pytest.approx(full, rel=0.05)
    assert more > 1.2 * full


def test_a_sum_cut_into_parts_pays_for_their_merging():
    """Few outputs of long sums are cut; wide ones fill the device with whole sums."""
    found = constants("h100-sxm")
    merge = found.matmul.model_copy(update={"merge": 1e-5})
    dear = found.model_copy(update={"matmul": merge})
    free = found.model_copy(update={"matmul": merge.model_copy(update={"merge": 0.0})})

    def taken(found, m, n, k):
        return curves.matmul(H100.device, found, m, n, k, "bfloat16").seconds.item()

    few, wide = (1, 1024, 8192), (8192, 8192, 8192)
    assert taken(free, *few) + 1e-6 < taken(dear, *few) <= taken(free, *few) + 1.01e-5
    assert taken(dear, *wide) == taken(free, *wide)


def test_constants_carry_over_by_the_sheet_alone():
    big = (8192, 8192, 8192)
    assert B200.matmul(*big).seconds < H100.matmul(*big).seconds < A100.matmul(*big).seconds
    assert H100.decode(16, 8192, 8, 128).seconds < A100.decode(16, 8192, 8, 128).seconds
    assert H100.prefill(4, 4096, 32, 8, 128).seconds < A100.prefill(4, 4096, 32, 8, 128).seconds


def test_exponentials_bind_prefill_where_matrix_units_outran_them():
    """With endless exponentials B200 would be faster; A100 would not."""

    def gain(model: CostModel) -> float:
        free = CostModel(model.device.model_copy(update={"exponentials": None}))
        given = (4, 16384, 32, 8, 128)
        return model.prefill(*given).seconds / free.prefill(*given).seconds

    assert gain(A100) == pytest.approx(1.0)
    assert gain(B200) >= gain(A100)


def test_every_time_has_an_interval_round_it():
    told = [
        A100.matmul(64, 4096, 4096),
        A100.prefill(1, 512, 32, 8, 128),
        A100.decode(4, 4096, 8, 128),
        A100.rows("norm", 100, 4096, 8192),
        A100.collective("all_reduce", 8, 2.0**20),
    ]
    for each in told:
        assert 0 < each.low < each.high and each.low < 1.2 * each.seconds
        assert each.low < each.seconds < each.high


def test_shipped_constants_say_where_they_come_from():
    for name in shipped():
        found = constants(name)
        whose = ("aiconfigurator", "measured by workbench cost measure")
        assert any(name in found.source for name in whose) and " out" in found.split
        assert all(interval.rows >= 12 for interval in found.intervals.values())


def test_what_is_not_known_is_said_in_one_line():
    with pytest.raises(BadInput, match="units"):
        CostModel(device("tpu-v5e")).matmul(1, 2, 3)
    with pytest.raises(BadInput, match="one of: .*norm"):
        A100.rows("nrom", 1, 2, 3)
    with pytest.raises(BadInput, match="one of: all_reduce"):
        A100.collective("all_hands", 8, 1.0)
    with pytest.raises(BadInput, match="constants 'a10': none of that name; .*operators"):
        constants("a10")
    with pytest.raises(BadInput, match="no int4 peak"):
        curves.best_rate(A100.device, "int4", A100.constants)
