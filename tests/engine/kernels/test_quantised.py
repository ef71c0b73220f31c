"""Weights of few bits: what codes stand for, how they lie in memory, products of any width."""

import numpy as np
import pytest
import torch

from engine.core.errors import BadInput
from engine.kernels.parity import distance
from engine.kernels.quantised.formats import format_of
from engine.kernels.quantised.pack import pack, words_of
from engine.kernels.quantised.panels_cpu import quantised_matmul
from engine.kernels.quantised.reference import quantised_matmul as reference
from engine.kernels.quantised.weight import (
    Quantised,
    nearest,
    round_to_nearest,
    rounded,
    scale_of,
    through,
)

WIDTHS = [f"int{bits}" for bits in range(1, 9)]
NAMES = [*WIDTHS, "ternary", "e2m1", "e3m2", "e2m3", "e2m5", "e3m4", "e4m3", "e5m2"]


def drawn(outputs: int, inputs: int) -> torch.Tensor:
    return torch.randn(outputs, inputs, generator=torch.Generator().manual_seed(3))


@pytest.mark.parametrize(
    ("name", "dtype"), [("e4m3", torch.float8_e4m3fn), ("e5m2", torch.float8_e5m2)]
)
def test_floats_of_eight_bits_are_torchs(name, dtype):
    codes = torch.arange(256, dtype=torch.uint8)
    theirs = codes.view(dtype).float().numpy()
    theirs[~np.isfinite(theirs)] = np.nan
    np.testing.assert_array_equal(format_of(name).values, theirs)


def test_floats_of_four_bits_are_the_microscaling_formats():
    positive = format_of("e2m1").values[:8].tolist()
    assert positive == [0, 0.5, 1, 1.5, 2, 3, 4, 6]
    assert format_of("e3m2").largest == 28 and format_of("e2m3").largest == 7.5


@pytest.mark.parametrize("name", ["int9", "int0", "e6m1", "e5m3", "fp8", "", "e1m2"])
def test_a_format_that_is_not_known_is_refused(name):
    with pytest.raises(BadInput, match="give int1 to int8"):
        format_of(name)


@pytest.mark.parametrize("name", NAMES)
def test_rounding_takes_the_nearest_value_there_is(name):
    weight_NK = drawn(5, 64)
    found = round_to_nearest(weight_NK, name, 32)
    assert found.codes_NK.max() < 2**found.format.bits
    zeros = 0 if found.zeros_NG is None else found.zeros_NG[:, :, None]
    units = weight_NK.numpy().reshape(5, 2, 32) / found.scales_NG[:, :, None] + zeros
    values = found.format.values[np.isfinite(found.format.values)]
    least = np.abs(units[..., None] - values).min(-1)
    chosen = found.format.values[found.codes_NK].reshape(5, 2, 32)
    np.testing.assert_allclose(np.abs(units - chosen), least, rtol=1e-4, atol=1e-5)


def test_a_zero_keeps_nought_exact_and_takes_the_groups_ends():
    weight_NK = drawn(4, 32).abs() + 0.5
    weight_NK[:, 0] = 0
    found = round_to_nearest(weight_NK, "int4", 32, zero=True).dequantised()
    assert (found[:, 0] == 0).all()
    plain = round_to_nearest(weight_NK, "int4", 32).dequantised()
    assert (found - weight_NK).norm() < (plain - weight_NK).norm()
    with pytest.raises(BadInput, match="only integers"):
        round_to_nearest(weight_NK, "e4m3", 32, zero=True)


@pytest.mark.parametrize("name", NAMES)
def test_packing_keeps_every_code_in_its_bits(name):
    weight = round_to_nearest(drawn(70, 100), name, 32)
    packed = pack(weight)
    again = packed.unpacked()
    np.testing.assert_array_equal(again.codes_NK, weight.codes_NK)
    np.testing.assert_allclose(again.scales_NG, weight.scales_NG)
    held = packed.blocks_PB.nbytes * 8 / packed.format.bits
    assert held == 128 * 128  # outputs up to 64, inputs up to 32


def test_a_cache_line_behind_the_words_can_be_read():
    packed = pack(round_to_nearest(drawn(64, 64), "int4", 32))
    array = packed.blocks_PB
    while array.base is not None:
        array = array.base
    end = packed.blocks_PB.ctypes.data + packed.blocks_PB.nbytes
    assert array.ctypes.data + array.nbytes - end >= 64


def test_groups_that_blocks_do_not_divide_are_refused():
    assert words_of(format_of("int6"), 16) == 3
    with pytest.raises(BadInput, match="multiple of 32"):
        pack(round_to_nearest(drawn(4, 100), "int5", 16))


@pytest.mark.parametrize("name", NAMES)
def test_interpreted_products_of_any_width_are_those_of_plain_numbers(name):
    words = pytest.importorskip("engine.kernels.quantised.words")
    weight = round_to_nearest(drawn(66, 70), name, 16 if name == "int6" else 32, name == "int3")
    x_MK = drawn(3, 70)
    truth = reference(x_MK.double(), weight)
    assert distance(words.quantised_matmul(x_MK, pack(weight)), truth) <= 2e-6


def test_a_row_has_the_same_bits_alone_and_in_any_batch():
    packed = pack(round_to_nearest(drawn(70, 130), "int4", 64, zero=True))
    x_MK = drawn(9, 130)
    whole = quantised_matmul(x_MK, packed)
    for rows in (1, 2, 4, 5):
        assert torch.equal(quantised_matmul(x_MK[:rows], packed), whole[:rows])


def test_scales_by_group_multiply_their_own_inputs():
    codes = np.ones((2, 64), np.uint8)
    scales = np.array([[1.0, 10.0], [2.0, 20.0]], np.float32)
    weight = Quantised(format_of("int4"), codes, scales, None, 32)
    x_MK = torch.zeros(1, 64)
    x_MK[0, 31], x_MK[0, 32] = 1, 1
    assert quantised_matmul(x_MK, pack(weight)).tolist() == [[11, 22]]


@pytest.mark.parametrize("name", ["int8", "int4", "e2m5", "e4m3", "e5m2", "e2m1"])
def test_rounding_without_codes_is_rounding_with_them(name):
    of = format_of(name)
    x = torch.cat([drawn(1, 4000)[0] * of.largest / 2, torch.tensor([0.0, 1e30, -1e30])])
    codes = nearest(x.numpy(), of)
    found, held = rounded(x, of).numpy(), of.values[codes]
    held = np.clip(held, -of.largest, of.largest)
    np.testing.assert_allclose(np.abs(found - x.numpy()), np.abs(held - x.numpy()), rtol=1e-5)
    assert np.isin(found, of.values).all()


def test_the_best_range_errs_less_than_the_largest_number_and_gradients_pass():
    x, of = drawn(4, 500), format_of("int4")
    errors = []
    for best in (False, True):
        scale = scale_of(x, of, 1, best)
        errors.append(float((rounded(x / scale, of) * scale - x).square().mean()))
    assert errors[1] < 0.9 * errors[0]
    leaf = x.clone().requires_grad_()
    through(leaf, of, scale_of(x, of)).sum().backward()
    assert torch.equal(leaf.grad, torch.ones_like(x))
