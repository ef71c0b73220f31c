import numpy as np
import pytest
import torch

from engine.kernels.matmul import matmul, pack, work
from engine.kernels.matmul.pack import aligned, packed_length
from engine.kernels.matmul.reference import matmul as plain

SHAPES = [(1, 1), (1, 3), (16, 1), (33, 7), (48, 64), (100, 65), (130, 256)]


def random_pair(outputs, inputs, dtype, rows=33, seed=0):
    draw = torch.Generator().manual_seed(seed)
    weight = torch.randn(outputs, inputs, generator=draw).to(dtype)
    return torch.randn(rows, inputs, generator=draw), weight


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("outputs,inputs", SHAPES)
def test_product_equals_torch_at_odd_shapes(outputs, inputs, dtype):
    x, weight = random_pair(outputs, inputs, dtype)
    expected = plain(x.double().float(), weight)
    torch.testing.assert_close(matmul(x, pack(weight)), expected, rtol=1e-5, atol=2e-5)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_row_has_the_same_bits_in_every_batch(dtype):
    x, weight = random_pair(200, 97, dtype)
    packed = pack(weight)
    together = matmul(x, packed)
    for rows in range(1, 33):
        assert torch.equal(matmul(x[:rows], packed), together[:rows])
    for row in range(len(x)):
        assert torch.equal(matmul(x[row : row + 1], packed)[0], together[row])


def test_no_rows_give_no_rows():
    assert matmul(torch.zeros(0, 5), pack(torch.randn(3, 5))).shape == (0, 3)


def test_half_weights_keep_their_bits():
    x, weight = torch.eye(9), torch.randn(20, 9).bfloat16()
    assert torch.equal(matmul(x, pack(weight)).T, weight.float())


def test_weights_that_are_not_a_number_reach_their_own_column_only():
    weight = torch.ones(17, 4)
    weight[3] = float("nan")
    bad = torch.isnan(matmul(torch.ones(5, 4), pack(weight)))
    assert bad[:, 3].all() and bad.sum() == 5


def test_panels_beyond_the_outputs_read_as_zero():
    packed = pack(torch.ones(17, 3))
    tail = packed.data.reshape(2, 3, 16)[1]
    assert tail[:, 0].tolist() == [1, 1, 1] and not tail[:, 1:].any()


def test_packed_memory_starts_on_a_cache_line_and_counts_its_bytes():
    assert aligned(5, np.float32).ctypes.data % 64 == 0
    packed = pack(torch.ones(17, 3).bfloat16())
    assert packed.bytes == 4 * packed_length(17, 3, half=True) == 2 * 32 * 4


def test_work_counts_a_small_product_by_hand():
    assert work.flops(2, 3, 5) == 60
    assert work.bytes(2, 3, 5, weight_bytes=2) == 3 * 5 * 2 + 4 * 2 * (5 + 3)
