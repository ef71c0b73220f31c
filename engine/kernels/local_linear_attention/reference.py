"""Local linear attention with each query's matrix formed: what the matrix-free solver must equal.

Zuo et al., "Local Linear Attention: An Optimal Interpolation of Linear and Softmax Attention For
Test-Time Regression" (arXiv 2510.01450). Shapes: B batch, H heads, T tokens, D key, E value width.
"""

import torch
from torch import Tensor


def local_linear_attention(
    q_BHTD: Tensor, k_BHTD: Tensor, v_BHTE: Tensor, scale: float, ridge: float
) -> Tensor:
    """The intercept b of argmin Σ_j p_j |v_j - b - W (k_j - q)|² + ridge·|W|² at each query.

    p: causal softmax weights of scale · q·k. With m and C the mean and covariance of keys under p
    this is b = v̄ + Cov(v, k) (C + ridge·I)⁻¹ (q - m); a large ridge gives softmax attention. In
    float32 (float64 stays); forms B·H·T matrices of D × D.
    """
    kind = torch.promote_types(q_BHTD.dtype, torch.float32)
    q, k, v = (x.to(kind) for x in (q_BHTD, k_BHTD, v_BHTE))
    time, width = q.shape[-2:]
    future = torch.ones(time, time, dtype=torch.bool, device=q.device).triu(1)
    p_TS = (scale * q @ k.mT).masked_fill(future, -torch.inf).softmax(-1)
    m_TD = p_TS @ k
    outer_SDD = k.unsqueeze(-1) * k.unsqueeze(-2)
    c_TDD = (p_TS @ outer_SDD.flatten(-2)).unflatten(-1, (width, width))
    c_TDD = c_TDD - m_TD.unsqueeze(-1) * m_TD.unsqueeze(-2)
    eye = torch.eye(width, dtype=kind, device=q.device)
    z_TD = torch.linalg.solve(c_TDD + ridge * eye, (q - m_TD).unsqueeze(-1)).squeeze(-1)
    slope_TS = z_TD @ k.mT - (z_TD * m_TD).sum(-1, keepdim=True)
    return (p_TS * (1.0 + slope_TS)) @ v
