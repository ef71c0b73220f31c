"""A projection with its weight prepared once: y = x Wᵀ + b."""

import torch.nn.functional as F
from torch import Tensor


class Linear:
    """`weight_NK` as the checkpoint means it, [out, in]."""

    __slots__ = ("bias_N", "weight_NK")

    def __init__(self, weight_NK: Tensor, bias_N: Tensor | None = None) -> None:
        self.weight_NK = weight_NK
        self.bias_N = bias_N

    def __call__(self, x_TK: Tensor) -> Tensor:
        """y_TN for x_TK."""
        return F.linear(x_TK, self.weight_NK, self.bias_N)
