"""Product with a linear layer's weight in plain torch: what the fast ones must equal."""

import torch
import torch.nn.functional as F
from torch import Tensor


def matmul(x_MK: Tensor, weight_NK: Tensor) -> Tensor:
    """y_MN = x · Wᵀ in float32, whatever the dtypes (float64 stays)."""
    wide = torch.promote_types(x_MK.dtype, torch.float32)
    return F.linear(x_MK.to(wide), weight_NK.to(wide))
