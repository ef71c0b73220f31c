"""Product with a linear layer's weight in plain torch: what the fast ones must equal."""

import torch.nn.functional as F
from torch import Tensor


def matmul(x_MK: Tensor, weight_NK: Tensor) -> Tensor:
    """y_MN = x · Wᵀ in float32, whatever the weight's dtype."""
    return F.linear(x_MK.float(), weight_NK.float())
