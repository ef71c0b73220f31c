"""RMS norm in plain torch (Zhang and Sennrich, arXiv 1910.07467): what the fast ones must equal."""

import torch
from torch import Tensor


def rms_norm(x_TC: Tensor, weight_C: Tensor, eps: float) -> Tensor:
    """x / √(mean(x²) + eps) · weight, in float32 (float64 stays)."""
    wide = x_TC.to(torch.promote_types(x_TC.dtype, torch.float32))
    return wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + eps) * weight_C.to(wide.dtype)
