"""Product with a quantised weight in plain torch: dequantised, then multiplied."""

import torch
import torch.nn.functional as F
from torch import Tensor

from engine.kernels.quantised.pack import Packed
from engine.kernels.quantised.weight import Quantised


def quantised_matmul(x_MK: Tensor, weight: Quantised | Packed) -> Tensor:
    """y_MN = x · Wᵀ in float32 (float64 stays), the weight as plain numbers."""
    wide = torch.promote_types(x_MK.dtype, torch.float32)
    plain = weight.unpacked() if isinstance(weight, Packed) else weight
    return F.linear(x_MK.to(wide), plain.dequantised(wide))
