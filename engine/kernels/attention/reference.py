"""Softmax attention in plain torch, scores materialised: what the tiled ones must equal.

Shape letters: T query tokens and S key tokens of all sequences, one after another; B sequences,
H query heads, G key/value heads, D key size, E value size, N and M tokens of one sequence.
"""

import torch
from torch import Tensor


def attention(
    q_THD: Tensor,
    k_SGD: Tensor,
    v_SGE: Tensor,
    query_start_B1: Tensor,
    key_start_B1: Tensor,
    *,
    scale: float,
    causal: bool = True,
    window: int = 0,
    softcap: float = 0.0,
) -> tuple[Tensor, Tensor]:
    """o_THE in q's dtype and lse_TH (natural logarithm of the sum of exponentials) in float32.

    Sequence b owns query tokens query_start[b] … query_start[b + 1] and keys likewise; its queries
    are its last tokens. `causal` hides later keys, `window` all but the last so many (0: none),
    `softcap` bounds scores to ±softcap (0: none). Float64 stays float64. A query that sees no key
    gives 0 and -inf.
    """
    (T, H, _), E = q_THD.shape, v_SGE.shape[-1]
    wide = torch.promote_types(q_THD.dtype, torch.float32)
    queries, keys = query_start_B1.tolist(), key_start_B1.tolist()
    outputs, sums = [], []
    for b in range(len(queries) - 1):
        q_NHD = q_THD[queries[b] : queries[b + 1]].to(wide)
        k_MGD, v_MGE = (x[keys[b] : keys[b + 1]].to(wide) for x in (k_SGD, v_SGE))
        share = H // k_MGD.shape[1]
        s_HNM = torch.einsum("nhd,mhd->hnm", q_NHD, k_MGD.repeat_interleave(share, 1)) * scale
        if softcap:
            s_HNM = torch.tanh(s_HNM / softcap) * softcap
        hidden_NM = hidden(q_NHD.shape[0], k_MGD.shape[0], causal, window).to(s_HNM.device)
        s_HNM = s_HNM.masked_fill(hidden_NM, float("-inf"))
        lse_HN = torch.logsumexp(s_HNM, -1)
        p_HNM = torch.exp(s_HNM - lse_HN[..., None]).masked_fill(hidden_NM, 0.0)
        outputs.append(torch.einsum("hnm,mhe->nhe", p_HNM, v_MGE.repeat_interleave(share, 1)))
        sums.append(lse_HN.T)
    if not outputs:
        return q_THD.new_zeros(T, H, E), q_THD.new_zeros(T, H, dtype=wide)
    return torch.cat(outputs).to(q_THD.dtype), torch.cat(sums)


def hidden(queries: int, keys: int, causal: bool, window: int) -> Tensor:
    """bool [queries, keys]: which keys a query does not see; the last query stands at the last
    key."""
    back_NM = torch.arange(keys - queries, keys)[:, None] - torch.arange(keys)
    none = torch.zeros_like(back_NM, dtype=torch.bool)
    return (back_NM < 0 if causal else none) | (back_NM >= window if window else none)
