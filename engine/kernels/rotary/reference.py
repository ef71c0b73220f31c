"""Rotation of head halves in plain torch (Su et al., arXiv 2104.09864): the truth.

Shape letters: T tokens, H heads, D head size, F = D / 2.
"""

import torch
from torch import Tensor


def rotate(x_THD: Tensor, cos_TF: Tensor, sin_TF: Tensor) -> Tensor:
    """Dimension i turns with dimension i + D/2 by the token's angle, in float32 (float64 stays)."""
    wide = torch.promote_types(x_THD.dtype, torch.float32)
    first, second = x_THD.to(wide).chunk(2, dim=-1)
    cos, sin = cos_TF[:, None].to(wide), sin_TF[:, None].to(wide)
    return torch.cat([first * cos - second * sin, second * cos + first * sin], dim=-1)
