"""Products by table lookup: exact for integers, exact to rounding for shifted floats."""

import numpy as np
import pytest
import torch

from engine.kernels.quantised import lookup
from engine.training.quantisation.binary_codes import shift_add
from engine.training.quantisation.ternary_lookup import coded


@pytest.mark.parametrize(("outputs", "inputs", "bits"), [(5, 8, 1), (37, 61, 2), (64, 96, 4)])
def test_shifts_and_sums_are_dequantise_then_multiply(outputs, inputs, bits):
    draw = torch.Generator().manual_seed(outputs)
    weight_NK = torch.randn(outputs, inputs, generator=draw)
    x_MK = torch.randn(3, inputs, generator=draw)
    x_MK[1] = 0
    codes = shift_add(weight_NK, None, bits, parts=4)
    truth_MN = x_MK.double() @ codes.dequantised().double().T
    found_MN = lookup.binary_matmul(x_MK, *codes.packed())
    torch.testing.assert_close(found_MN.double(), truth_MN, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("width", [1, 2, 3, 4, 5])
def test_sums_of_ternary_weights_are_the_integers(width):
    draw = np.random.default_rng(width)
    weight_NK = draw.integers(-1, 2, (9, 13))
    x_MK = torch.from_numpy(draw.integers(-128, 128, (2, 13)))
    found_MN = lookup.ternary_matmul(x_MK, coded(weight_NK, width), width)
    assert found_MN.tolist() == (x_MK @ torch.from_numpy(weight_NK).T).tolist()
