"""Gated linear attention, step by step in plain torch: what every other form must equal.

Yang et al., "Gated Linear Attention Transformers with Hardware-Efficient Training"
(arXiv 2312.06635): the recurrent form.
Shapes: B batch, H heads, T tokens, K key width, V value width.
"""

import torch
from torch import Tensor


def gated_linear_attention(
    q_BHTK: Tensor,
    k_BHTK: Tensor,
    v_BHTV: Tensor,
    log_gate_BHTK: Tensor,
    state_BHKV: Tensor,
    scale: float,
) -> tuple[Tensor, Tensor]:
    """S = exp(log_gate)·S + k vᵀ and o = scale · qᵀ S at each token, in float32 (float64 stays).

    `log_gate` ≤ 0: 0 keeps the state, so that all zeros is plain linear attention. Gives the
    outputs o_BHTV and the state after the last token.
    """
    kind = torch.promote_types(q_BHTK.dtype, torch.float32)
    q, k, v, g = (x.to(kind) for x in (q_BHTK, k_BHTK, v_BHTV, log_gate_BHTK))
    state = state_BHKV.to(kind)
    outputs = []
    for t in range(q.shape[2]):
        kept = g[:, :, t].exp().unsqueeze(-1) * state
        state = kept + k[:, :, t].unsqueeze(-1) * v[:, :, t].unsqueeze(-2)
        outputs.append(scale * (q[:, :, t].unsqueeze(-2) @ state).squeeze(-2))
    if not outputs:
        return torch.empty_like(v), state
    return torch.stack(outputs, dim=2), state
