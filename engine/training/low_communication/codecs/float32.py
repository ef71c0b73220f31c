"""The codec that changes nothing: float32 numbers as they are."""

from typing import Literal

import torch
from torch import Tensor

from engine.training.low_communication.codec import Codec, numbers, raw


class Float32(Codec):
    """Four bytes a number, exact."""

    kind: Literal["float32"] = "float32"

    def bytes(self, count: int) -> int:
        return 4 * count

    def pack(self, x_N: Tensor) -> Tensor:
        return raw(x_N).clone()

    def unpack(self, packed: Tensor, count: int) -> Tensor:
        return numbers(packed, torch.float32)
