"""Paged attention in plain torch: what the fast ones must equal.

Shape letters: T new tokens, H query heads, G key/value heads, D key size, E value size,
B sequences, P pages of the longest sequence, S tokens of a page, N visible tokens.
"""

import torch
from torch import Tensor


def paged_attention(
    q_THD: Tensor,
    k_PSGD: Tensor,
    v_PSGE: Tensor,
    block_table_BP: Tensor,
    query_start_B1: Tensor,
    context_B: Tensor,
    *,
    scale: float,
    window: int = 0,
    softcap: float = 0.0,
) -> Tensor:
    """o_THE in float32 (float64 stays): each new token attends to its sequence up to itself.

    `context_B` counts a sequence's tokens with the new ones, which are its last. `window` limits
    how many tokens a query sees (0: all), `softcap` bounds scores to ±softcap (0: none).
    """
    T, H, _ = q_THD.shape
    wide = torch.promote_types(q_THD.dtype, torch.float32)
    out_THE = q_THD.new_zeros(T, H, v_PSGE.shape[-1], dtype=wide)
    starts, contexts = query_start_B1.tolist(), context_B.tolist()
    for row, context in enumerate(contexts):
        first, last = starts[row], starts[row + 1]
        if first == last:
            continue
        k_NGD = _gather(k_PSGD, block_table_BP[row], context, wide)
        v_NGE = _gather(v_PSGE, block_table_BP[row], context, wide)
        share = H // k_NGD.shape[1]
        q = q_THD[first:last].to(wide)
        scores = torch.einsum("thd,nhd->htn", q, k_NGD.repeat_interleave(share, dim=1)) * scale
        if softcap:
            scores = torch.tanh(scores / softcap) * softcap
        new = last - first
        at = torch.arange(context, device=q.device)
        back = at[context - new :, None] - at
        hidden = back < 0 if not window else (back < 0) | (back >= window)
        weights = scores.masked_fill(hidden, float("-inf")).softmax(-1)
        values = v_NGE.repeat_interleave(share, dim=1)
        out_THE[first:last] = torch.einsum("htn,nhe->the", weights, values)
    return out_THE


def _gather(pages_PSGD: Tensor, table_P: Tensor, context: int, dtype: torch.dtype) -> Tensor:
    size = pages_PSGD.shape[1]
    held = pages_PSGD[table_P[: -(-context // size)].long()]
    return held.flatten(0, 1)[:context].to(dtype)
