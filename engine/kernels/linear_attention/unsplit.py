"""Chunkwise gated linear attention with one level only: what the second level is there to mend.

Decays inside a chunk are split into e^b for the query and e^-b for the key (b: gates summed from
the chunk's start), so that one matrix product gives all scores of a chunk. With strong gates e^-b
overflows (Yang et al., arXiv 2312.06635).
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
    chunk: int = 64,
) -> tuple[Tensor, Tensor]:
    """As the reference where gates are mild: (outputs, last state), in the arguments' dtype."""
    outputs, state = [], state_BHKV
    for start in range(0, q_BHTK.shape[2], chunk):
        cut = slice(start, start + chunk)
        q, k, v = q_BHTK[:, :, cut] * scale, k_BHTK[:, :, cut], v_BHTV[:, :, cut]
        total = log_gate_BHTK[:, :, cut].cumsum(2)
        scores = (q * total.exp()) @ (k * (-total).exp()).mT
        outputs.append(scores.tril() @ v + (q * total.exp()) @ state)
        left = (total[:, :, -1:] - total).exp()
        state = total[:, :, -1].exp().unsqueeze(-1) * state + (k * left).mT @ v
    return torch.cat(outputs, 2), state
