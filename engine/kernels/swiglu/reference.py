"""SwiGLU in plain torch (Shazeer, arXiv 2002.05202): what the fast ones must equal."""

import torch
import torch.nn.functional as F
from torch import Tensor


def swiglu(gate_TC: Tensor, up_TC: Tensor) -> Tensor:
    """gate · sigmoid(gate) · up in float32 (float64 stays)."""
    wide = torch.promote_types(gate_TC.dtype, torch.float32)
    return F.silu(gate_TC.to(wide)) * up_TC.to(wide)
