"""Products in integers: exact beside the same quantisation in numpy, the same in any batch."""

import numba
import numpy as np
import pytest
import torch
from numba import types

from engine.kernels.compiled import emitted
from engine.kernels.integer_matmul.activations import LARGEST, codes, group_of
from engine.kernels.integer_matmul.integers_cpu import VARIANT, integer_matmul
from engine.kernels.integer_matmul.reference import dequantised
from engine.kernels.integer_matmul.reference import integer_matmul as reference
from engine.kernels.integer_matmul.tile import VNNI, dot, takes
from engine.kernels.lanes import INTS, address, load
from engine.kernels.quantised.formats import format_of
from engine.kernels.quantised.pack import pack
from engine.kernels.quantised.weight import Quantised, round_to_nearest


def drawn(rows: int, inputs: int, seed: int = 3) -> torch.Tensor:
    return torch.randn(rows, inputs, generator=torch.Generator().manual_seed(seed))


def dots(native: bool):
    """The dot product of bytes over arrays of int32, as the processor has it or by plain steps."""

    @emitted
    def each(context, total, unsigned, signed):
        def emit(target, b, signature, args):
            kinds, zero = signature.args, target.get_constant(types.int64, 0)
            places = [
                address(target, b, kind, array, zero, INTS)
                for kind, array in zip(kinds, args, strict=True)
            ]
            found = dot(b, *(load(b, place) for place in places), native)
            b.store(found, places[0]).align = 4
            return target.get_dummy_value()

        return types.void(total, unsigned, signed), emit

    return numba.njit(lambda total, unsigned, signed: each(total, unsigned, signed))


def test_bytes_multiply_alike_with_the_processor_s_instruction_and_without():
    draw = np.random.default_rng(0)
    unsigned = draw.integers(0, 256, 64).astype(np.uint8)
    signed = draw.integers(-128, 128, 64).astype(np.int8)
    unsigned[:8], signed[:4], signed[4:8] = 255, -128, 127  # what saturates in sums of 16 bits
    total = draw.integers(-(2**20), 2**20, 16).astype(np.int32)
    products = unsigned.astype(np.int64) * signed
    expected = total + products.reshape(16, 4).sum(1)
    for native in {False, VNNI}:
        found = total.copy()
        dots(native)(found, unsigned.view(np.int32), signed.view(np.int32))
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize(("name", "zero"), [("int4", True), ("int8", False)])
def test_a_row_has_the_same_bits_alone_and_in_any_batch(name, zero):
    packed = pack(round_to_nearest(drawn(150, 192), name, 64, zero))
    x_MK = drawn(19, 192, 5)
    whole = integer_matmul(x_MK, packed)
    for rows in (1, 2, 4, 5, 8, 9):
        assert torch.equal(integer_matmul(x_MK[19 - rows :], packed), whole[19 - rows :])


def test_the_largest_integers_there_are_stay_exact():
    codes_NK = np.full((2, 256), 0x80, np.uint8)  # -128
    codes_NK[1] = 0x7F
    weight = Quantised(format_of("int8"), codes_NK, np.ones((2, 1), np.float32), None, 256)
    x_MK = torch.full((1, 256), 3.0)
    found = integer_matmul(x_MK, pack(weight))
    step = np.float32(3) / np.float32(LARGEST)
    np.testing.assert_allclose(
        found, [[-128 * 256 * 127 * step, 127 * 256 * 127 * step]], rtol=1e-6
    )


def test_activations_lose_half_a_step_at_most():
    x_MK = drawn(4, 320)
    weight = round_to_nearest(drawn(40, 320, 5), "int4", 32)
    held_MK, scales_MG = codes(x_MK.numpy(), 32)
    assert np.abs(held_MK).max() == LARGEST
    steps_MK = np.repeat(scales_MG, 32, axis=1)
    assert (np.abs(dequantised(x_MK, weight).numpy() - x_MK.numpy()) <= 0.501 * steps_MK).all()
    plain_NK = weight.dequantised(torch.float64)
    apart_MN = (integer_matmul(x_MK, pack(weight)) - x_MK.double() @ plain_NK.T).abs()
    assert (apart_MN <= 0.502 * torch.from_numpy(steps_MK).double() @ plain_NK.abs().T).all()
    assert apart_MN.max() > 1e-4, "activations were not quantised at all"


def test_what_is_no_number_stays_in_its_own_row():
    packed = pack(round_to_nearest(drawn(70, 64), "int8", 32))
    x_MK = drawn(6, 64)
    whole = integer_matmul(x_MK, packed)
    x_MK[1, 40], x_MK[4, 3], x_MK[5] = float("nan"), float("inf"), 0
    found = integer_matmul(x_MK, packed)
    assert found[[1, 4]].isnan().all() and (found[5] == 0).all()
    assert torch.equal(found[[0, 2, 3]], whole[[0, 2, 3]])


def test_groups_of_activations_are_of_32_to_128_inputs_within_one_scale_of_the_weight():
    assert [group_of(group, 4096) for group in (16, 32, 64, 128)] == [16, 32, 64, 128]
    assert [group_of(group, 4096) for group in (160, 192, 256, 4096)] == [32, 64, 128, 128]
    assert group_of(300, 300) == 128


def test_formats_that_are_no_integers_of_a_byte_s_parts_are_refused():
    others = "int3", "int6", "e2m1", "e4m3", "int1"
    assert not any(takes(format_of(name)) for name in others)
    arguments = {"x_MK": drawn(1, 64), "weight": pack(round_to_nearest(drawn(4, 64), "int6", 32))}
    assert "not int6" in VARIANT.obstacle(arguments)


def test_one_scale_for_many_groups_of_activations_is_the_reference_s():
    weight = round_to_nearest(drawn(70, 384), "int8", 0)
    x_MK = drawn(5, 384) * torch.linspace(0.01, 3, 384)
    found, truth = integer_matmul(x_MK, pack(weight)), reference(x_MK.double(), weight)
    torch.testing.assert_close(found.double(), truth, rtol=1e-5, atol=1e-5)
