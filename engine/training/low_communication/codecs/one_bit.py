"""One bit a number: its sign, and for each block the mean magnitude."""

from typing import Literal

import torch
from torch import Tensor

from engine.core.config import knob
from engine.training.low_communication.codec import Codec, blocks, numbers, raw


class OneBit(Codec):
    """± the block's mean magnitude, eight numbers to a byte (1-bit Adam, arXiv 2102.02888).

    Blocks of equal size stand for the paper's one scale a tensor.
    """

    kind: Literal["one_bit"] = "one_bit"
    block: int = knob(512, "numbers that share a scale", low=8, high=65_536)

    def bytes(self, count: int) -> int:
        return -(-count // 8) + 4 * -(-count // self.block)

    def pack(self, x_N: Tensor) -> Tensor:
        x_BS = blocks(x_N, self.block)
        filled_BS = blocks(torch.ones_like(x_N), self.block)
        scale_B = x_BS.abs().sum(1) / filled_BS.sum(1)
        bits_M8 = blocks((x_N >= 0).to(torch.int64), 8)
        return torch.cat([(bits_M8 << torch.arange(8)).sum(1).to(torch.uint8), raw(scale_B)])

    def unpack(self, packed: Tensor, count: int) -> Tensor:
        whole = -(-count // 8)
        bits_N = ((packed[:whole, None] >> torch.arange(8, dtype=torch.uint8)) & 1).view(-1)[:count]
        scale_B = numbers(packed[whole:], torch.float32)
        sign_N = bits_N.float() * 2 - 1
        return (blocks(sign_N, self.block) * scale_B[:, None]).view(-1)[:count].clone()
