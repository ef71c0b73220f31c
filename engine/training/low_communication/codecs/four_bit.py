"""Four bits a number: a sign and three bits of exponent (E3M0), one scale for each block."""

from functools import cache
from typing import Literal

import torch
from torch import Tensor

from engine.core.config import knob
from engine.training.low_communication.codec import Codec, blocks, numbers, raw

LEVELS = 7  # magnitudes besides nought: 2^-6 … 2^0 of the block's largest


class FourBit(Codec):
    """Nearest of 0, ±2^-6 … ±1 times the block's largest magnitude, two numbers to a byte.

    Streaming DiLoCo (arXiv 2501.18512) sends outer gradients in E3M0; scales by block are ours.
    """

    kind: Literal["four_bit"] = "four_bit"
    block: int = knob(256, "numbers that share a scale", low=2, high=65_536)

    def bytes(self, count: int) -> int:
        return -(-count // 2) + 4 * -(-count // self.block)

    def pack(self, x_N: Tensor) -> Tensor:
        x_BS = blocks(x_N, self.block)
        scale_B = x_BS.abs().amax(1)
        share_BS = x_BS.abs() / torch.where(scale_B > 0, scale_B, 1.0)[:, None]
        code_N = (torch.bucketize(share_BS, _middles()) + 8 * (x_BS < 0)).view(-1)
        count = len(x_N) + len(x_N) % 2
        pair_H2 = torch.nn.functional.pad(code_N, (0, count))[:count].view(-1, 2)
        return torch.cat([(pair_H2[:, 0] + 16 * pair_H2[:, 1]).to(torch.uint8), raw(scale_B)])

    def unpack(self, packed: Tensor, count: int) -> Tensor:
        half = -(-count // 2)
        x_N = _pairs()[packed[:half].int()].view(-1)[:count]
        scale_B = numbers(packed[half:], torch.float32)
        return (blocks(x_N, self.block) * scale_B[:, None]).view(-1)[:count].clone()


@cache
def _middles() -> Tensor:
    """Where the nearest magnitude changes: halfway between neighbours, 0 included."""
    magnitudes = torch.cat([torch.zeros(1), 2.0 ** torch.arange(1 - LEVELS, 1)])
    return (magnitudes[1:] + magnitudes[:-1]) / 2


@cache
def _pairs() -> Tensor:
    """[256, 2] the two numbers of each byte; a code is one of 16, its fourth bit the sign."""
    magnitudes = torch.cat([torch.zeros(1), 2.0 ** torch.arange(1 - LEVELS, 1)])
    values = torch.cat([magnitudes, -magnitudes])
    byte = torch.arange(256)
    return values[torch.stack([byte & 15, byte >> 4], 1)]
