"""Codecs: sizes as told, rounding as bounded, and one more packing changes nothing."""

import pytest
import torch

from engine.core.config import kinds
from engine.training.low_communication.codec import Codec
from engine.training.low_communication.codecs.four_bit import FourBit
from engine.training.low_communication.codecs.one_bit import OneBit

EACH = [kind() for kind in kinds(Codec).values()]


@pytest.mark.parametrize("codec", EACH, ids=lambda codec: codec.kind)
@pytest.mark.parametrize("count", [1, 2, 7, 255, 256, 257, 1025])
def test_a_packed_vector_has_the_size_told_and_packs_to_itself(codec, count):
    x_N = torch.randn(count, generator=torch.Generator().manual_seed(count))
    packed = codec.pack(x_N)
    assert packed.dtype == torch.uint8
    assert packed.shape == (codec.bytes(count),)
    once = codec.unpack(packed, count)
    assert once.shape == (count,)
    again = codec.unpack(codec.pack(once), count)
    assert torch.allclose(again, once, rtol=1e-6)


@pytest.mark.parametrize("codec", EACH, ids=lambda codec: codec.kind)
def test_nought_stays_finite(codec):
    found = codec.unpack(codec.pack(torch.zeros(300)), 300)
    assert torch.equal(found, torch.zeros(300))


def test_four_bits_are_the_nearest_of_fifteen_numbers():
    x_N = torch.linspace(-1, 1, 513)
    codec = FourBit(block=1024)
    levels = torch.cat([torch.zeros(1), 2.0 ** torch.arange(-6, 1)])
    levels = torch.cat([levels, -levels])
    nearest = (x_N[:, None] - levels).abs().min(1).values
    found = codec.unpack(codec.pack(x_N), 513)
    assert torch.allclose((found - x_N).abs(), nearest, atol=1e-7)
    assert codec.bytes(100_000) < 0.52 * 100_000


def test_one_bit_keeps_signs_and_the_mean_size_of_a_block():
    x_N = torch.randn(1000)
    codec = OneBit(block=256)
    found = codec.unpack(codec.pack(x_N), 1000)
    assert torch.equal(found >= 0, x_N >= 0)
    for start in range(0, 1000, 256):
        part = slice(start, start + 256)
        assert torch.allclose(found[part].abs().mean(), x_N[part].abs().mean(), rtol=1e-5)
