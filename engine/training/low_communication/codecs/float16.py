"""Half precision, the usual width of gradients on the wire."""

from typing import Literal

import torch
from torch import Tensor

from engine.training.low_communication.codec import Codec, numbers, raw


class Float16(Codec):
    """Two bytes a number, rounded to 11 bits."""

    kind: Literal["float16"] = "float16"

    def bytes(self, count: int) -> int:
        return 2 * count

    def pack(self, x_N: Tensor) -> Tensor:
        return raw(x_N.half())

    def unpack(self, packed: Tensor, count: int) -> Tensor:
        return numbers(packed, torch.float16).float()
