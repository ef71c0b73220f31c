import pytest
import torch

from engine.kernels.norm import reference as norm_plain
from engine.kernels.norm import rms_norm
from engine.kernels.norm import work as norm_work
from engine.kernels.rotary import reference as rotary_plain
from engine.kernels.rotary import rotate
from engine.kernels.rotary import work as rotary_work
from engine.kernels.swiglu import reference as swiglu_plain
from engine.kernels.swiglu import swiglu
from engine.kernels.swiglu import work as swiglu_work


@pytest.mark.parametrize("rows,width", [(1, 1), (3, 15), (5, 16), (2, 40), (7, 768)])
def test_rms_norm_equals_torch(rows, width):
    torch.manual_seed(0)
    x, weight = torch.randn(rows, width), torch.randn(width)
    expected = norm_plain.rms_norm(x, weight, 1e-5)
    torch.testing.assert_close(rms_norm(x, weight, 1e-5), expected, rtol=1e-5, atol=1e-6)


def test_rms_norm_of_zeros_is_zero_and_takes_leading_axes():
    assert torch.equal(rms_norm(torch.zeros(2, 3, 5), torch.ones(5), 1e-6), torch.zeros(2, 3, 5))


@pytest.mark.parametrize("tokens,heads,dim", [(1, 1, 2), (3, 2, 10), (4, 5, 64), (0, 2, 8)])
def test_rotation_equals_torch(tokens, heads, dim):
    torch.manual_seed(0)
    x, angles = torch.randn(tokens, heads, dim), torch.randn(tokens, dim // 2) * 9
    turned = rotate(x, angles.cos(), angles.sin())
    expected = rotary_plain.rotate(x, angles.cos(), angles.sin())
    torch.testing.assert_close(turned, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("shape", [(1, 1), (3, 17), (2, 5000), (0, 4)])
def test_swiglu_equals_torch(shape):
    torch.manual_seed(0)
    gate, up = torch.randn(shape) * 5, torch.randn(shape)
    expected = swiglu_plain.swiglu(gate, up)
    torch.testing.assert_close(swiglu(gate, up), expected, rtol=1e-5, atol=1e-6)


def test_swiglu_stays_finite_at_its_ends():
    gate = torch.tensor([[-1e30, -200.0, -88.0, 0.0, 88.0, 200.0, 1e30]])
    found = swiglu(gate, torch.ones_like(gate))
    torch.testing.assert_close(found, torch.nn.functional.silu(gate), rtol=1e-5, atol=1e-6)


def test_work_grows_with_every_size():
    assert norm_work.flops(2, 8) == 64 and norm_work.bytes(2, 8) == 4 * (32 + 8)
    assert rotary_work.flops(2, 3, 4) == 72 and rotary_work.bytes(2, 3, 4) == 4 * (48 + 8)
    assert swiglu_work.flops(2, 8) == 64 and swiglu_work.bytes(2, 8) == 4 * 48
