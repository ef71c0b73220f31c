"""A projection with its weight prepared once, y = x Wᵀ + b: in plain torch, or packed for a kernel.

Shape letters: T tokens, N outputs, K inputs.
"""

import torch.nn.functional as F
from torch import Tensor

from engine.kernels.matmul import matmul, pack


class PlainLinear:
    """Any device; activations in the weight's type."""

    __slots__ = ("bias_N", "weight_NK")

    def __init__(self, weight_NK: Tensor, bias_N: Tensor | None) -> None:
        self.weight_NK = weight_NK
        self.bias_N = bias_N

    def __call__(self, x_TK: Tensor) -> Tensor:
        """y_TN."""
        return F.linear(x_TK, self.weight_NK, self.bias_N)


class PackedLinear:
    """The processor; activations in float32, a row's result the same bits in any batch."""

    __slots__ = ("bias_N", "weight")

    def __init__(self, weight_NK: Tensor, bias_N: Tensor | None) -> None:
        self.weight = pack(weight_NK)
        self.bias_N = None if bias_N is None else bias_N.float()

    def __call__(self, x_TK: Tensor) -> Tensor:
        """y_TN in float32."""
        y_TN = matmul(x_TK, self.weight)
        return y_TN if self.bias_N is None else y_TN.add_(self.bias_N)
