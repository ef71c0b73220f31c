"""Attention over pages in plain torch: what runs where no kernel fits the device.

Shape letters: T new tokens, H query heads, D key size, E value size, P pages, S page size,
G key/value heads, B sequences, C visible tokens.
"""

import numpy as np
import torch
from torch import Tensor

from engine.models.layers import float32_at_least
from engine.models.layers import softcap as capped


def paged_attention(
    q_THD: Tensor,
    k_pages_PSGD: Tensor,
    v_pages_PSGE: Tensor,
    block_table_BP: np.ndarray,
    query_start_B1: np.ndarray,
    context_B: np.ndarray,
    *,
    scale: float,
    window: int = 0,
    softcap: float = 0.0,
    sinks_H: Tensor | None = None,
) -> Tensor:
    """o_THE: each new token over its sequence's visible tokens, causal among the new ones.

    A window of W lets a token see itself and the W - 1 before it; 0 lets it see all. `sinks_H`: a
    logit of each head that takes weight and gives nothing.
    """
    page_size = k_pages_PSGD.shape[1]
    o_THE = q_THD.new_empty(*q_THD.shape[:2], v_pages_PSGE.shape[-1])
    for b, context in enumerate(context_B.tolist()):
        start, stop = int(query_start_B1[b]), int(query_start_B1[b + 1])
        pages = torch.from_numpy(block_table_BP[b, : -(-context // page_size)].astype(np.int64))
        pages = pages.to(q_THD.device)
        k_CGD = k_pages_PSGD[pages].flatten(0, 1)[:context]
        v_CGE = v_pages_PSGE[pages].flatten(0, 1)[:context]
        o_THE[start:stop] = _attend(
            q_THD[start:stop], k_CGD, v_CGE, scale, window, softcap, sinks_H
        )
    return o_THE


def _attend(
    q_THD: Tensor, k_CGD: Tensor, v_CGE: Tensor, scale: float, window: int, softcap: float,
    sinks_H: Tensor | None,
) -> Tensor:  # fmt: skip
    tokens, context, groups = q_THD.shape[0], k_CGD.shape[0], k_CGD.shape[1]
    q_TGJD = float32_at_least(q_THD).unflatten(1, (groups, -1))
    wide = q_TGJD.dtype
    scores_GJTC = torch.einsum("tgjd,cgd->gjtc", q_TGJD, k_CGD.to(wide)) * scale
    scores_GJTC = capped(scores_GJTC, softcap)
    if tokens > 1 or window:
        at_T1 = torch.arange(context - tokens, context, device=q_THD.device)[:, None]
        back_TC = at_T1 - torch.arange(context, device=q_THD.device)
        hidden_TC = back_TC < 0
        if window:
            hidden_TC |= back_TC >= window
        scores_GJTC = scores_GJTC.masked_fill(hidden_TC, float("-inf"))
    if sinks_H is not None:
        sinks_GJT1 = sinks_H.to(wide).view(groups, -1, 1, 1).expand(*scores_GJTC.shape[:3], 1)
        scores_GJTC = torch.cat([scores_GJTC, sinks_GJT1], dim=-1)
    weights_GJTC = scores_GJTC.softmax(-1)[..., :context]
    o_TGJE = torch.einsum("gjtc,cge->tgje", weights_GJTC, v_CGE.to(wide))
    return o_TGJE.flatten(1, 2).to(q_THD.dtype)
