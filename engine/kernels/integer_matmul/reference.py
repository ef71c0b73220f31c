"""Integer product in plain torch: activations quantised, sums by group exact, then scales."""

import numpy as np
import torch
from torch import Tensor

from engine.kernels.integer_matmul.activations import codes, group_of
from engine.kernels.quantised.pack import Packed
from engine.kernels.quantised.weight import Quantised


def dequantised(x_MK: Tensor, weight: Quantised) -> Tensor:
    """x as its codes of 8 bits stand for it, float64."""
    group = group_of(weight.group, x_MK.shape[1])
    codes_MK, scales_MG = codes(x_MK.detach().float().numpy(), group)
    wide_MK = np.repeat(scales_MG.astype(np.float64), group, axis=1)[:, : x_MK.shape[1]]
    return torch.from_numpy(codes_MK * wide_MK)


def integer_matmul(x_MK: Tensor, weight: Quantised | Packed) -> Tensor:
    """y_MN = x · Wᵀ of x's codes, in float32 (float64 stays): integers lose nothing on the way."""
    plain = weight.unpacked() if isinstance(weight, Packed) else weight
    y_MN = dequantised(x_MK, plain) @ plain.dequantised(torch.float64).T
    return y_MN.to(torch.promote_types(x_MK.dtype, torch.float32))
