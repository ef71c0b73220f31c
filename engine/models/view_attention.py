"""Attention over blocks of cache that a sequence sees at places of its own choosing.

A block's keys are stored once, rotated as if the block began at position 0. Scores depend on
relative angles alone, so a sequence that sees a block `shift` positions before its own block turns
its queries by `shift` instead of turning keys (Rodionov et al., arXiv 2504.06261),
attends to each block apart, and merges by log-sum-exp: exact, nothing copied, nothing recomputed.

Shape letters: T new tokens, B sequences, N (sequence, block) pairs, K blocks, P pages of the
longest block, H query heads, G key/value heads, D head size, L visible keys.
"""

from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from engine.core.errors import BadInput
from engine.kernels.paged_attention.merge import merge
from engine.models.batch import Batch, Views
from engine.models.config import ModelConfig, Rotary
from engine.models.layers import softcap
from engine.models.rotary import cos_sin, frequencies, rotate


def require_views(config: ModelConfig) -> None:
    """Raises BadInput where a cached key cannot be seen at another position, or all are of a text
    with masks."""
    config.usual("a view of the cache")
    if config.mask:
        raise BadInput(
            f"{config.architecture}: fills in masks; threads over views of the cache write in order"
        )
    if config.latent is not None:
        raise BadInput(
            f"{config.architecture}: views of the cache need plain keys and values; "
            "latent attention is not supported"
        )
    if config.rotary is None or config.rotary.kind == "dynamic":
        raise BadInput(
            f"{config.architecture}: views of the cache need rotary positions whose angle grows "
            "with the position alone; learned and dynamic positions cannot be moved"
        )


def pure(rotary: Rotary) -> Rotary:
    """The same rotation without its magnitude, which keys and queries carry already."""
    return replace(rotary, magnitude=1.0)


class ViewAttention:
    """Attention of one forward pass over views, in plain torch; each layer calls it."""

    def __init__(self, config: ModelConfig, batch: Batch, views: Views, device: str) -> None:
        require_views(config)
        assert config.rotary is not None
        self.batch, self.views = batch, views
        shift_N = torch.from_numpy(views.shift_N).to(device)
        rotary = pure(config.rotary)
        self.turn = cos_sin(rotary, frequencies(rotary).to(device), shift_N, torch.float32)

    def __call__(
        self, q_THD: Tensor, k_PSGD: Tensor, v_PSGD: Tensor, *,
        scale: float, window: int, softcap: float,
    ) -> Tensor:  # fmt: skip
        """o_THD in float32 of queries rotated by their positions in their own blocks."""
        batch, views = self.batch, self.views
        starts, first = batch.query_start_B1.tolist(), views.first_B1.tolist()
        out_THD = torch.empty_like(q_THD, dtype=torch.float32)
        for b, own in enumerate(batch.context_B.tolist()):
            here = slice(starts[b], starts[b + 1])
            q, at_T = q_THD[here].float(), torch.arange(own - (here.stop - here.start), own)
            limits = scale, window, softcap
            pages = batch.block_table_BP[b]
            o, lse = _part(q, at_T, _seen(k_PSGD, pages, own), _seen(v_PSGD, pages, own), *limits)
            for n in range(first[b], first[b + 1]):
                pages, seen = views.table_KP[views.block_N[n]], int(views.seen_N[n])
                turned = rotate(q, self.turn[0][n], self.turn[1][n], False)
                keys, values = _seen(k_PSGD, pages, seen), _seen(v_PSGD, pages, seen)
                part = _part(turned, at_T + int(views.shift_N[n]), keys, values, *limits)
                o, lse = merge(o, lse, *part)
            out_THD[here] = o.unflatten(0, (-1, q.shape[1]))
        return out_THD


def _seen(pages_PSGD: Tensor, table_P: np.ndarray, count: int) -> Tensor:
    """The first `count` tokens of a block, [L, G, D]."""
    size = pages_PSGD.shape[1]
    held = torch.from_numpy(table_P[: -(-count // size)]).long().to(pages_PSGD.device)
    return pages_PSGD[held].flatten(0, 1)[:count].float()


def _part(
    q_THD: Tensor, at_T: Tensor, k_LGD: Tensor, v_LGD: Tensor, scale: float, window: int, cap: float
) -> tuple[Tensor, Tensor]:
    """(o [T·H, D], lse [T·H]) over one block, queries standing `at_T` positions after its start."""
    share = q_THD.shape[1] // k_LGD.shape[1]
    k, v = k_LGD.repeat_interleave(share, dim=1), v_LGD.repeat_interleave(share, dim=1)
    scores_THL = softcap(torch.einsum("thd,lhd->thl", q_THD, k) * scale, cap)
    back_TL = (at_T[:, None] - torch.arange(len(k))).to(q_THD.device)
    hidden_TL = back_TL < 0 if not window else (back_TL < 0) | (back_TL >= window)
    scores_THL = scores_THL.masked_fill(hidden_TL[:, None], float("-inf"))
    lse_TH = scores_THL.logsumexp(-1)
    empty_TH = lse_TH == float("-inf")
    weights_THL = torch.exp(scores_THL - lse_TH.masked_fill(empty_TH, 0.0)[..., None])
    return torch.einsum("thl,lhd->thd", weights_THL, v).flatten(0, 1), lse_TH.flatten()
