"""Latent attention's queries, keys and values of a tensor rank's heads.

Multi-head latent attention (DeepSeek-V2, arXiv 2405.04434, section 2.1). Latents and the shared
rotated key are made by weights that every rank has; from there on heads are split.
Shape letters: B sequences, T tokens, C hidden, H heads here.
"""

from collections.abc import Mapping

import torch
import torch.nn.functional as F
from torch import Tensor

from engine.models.config import ModelConfig
from engine.models.layers import LATENT_NORM_EPS, rms_norm
from engine.models.rotary import rotate
from engine.training.parallel.parallelism import Parallelism
from engine.training.parallel.tensor.layers import column


def latent_inputs(
    config: ModelConfig, parallel: Parallelism, w: Mapping[str, Tensor], x_BTC: Tensor,
    turn: tuple[Tensor, Tensor], task: str,
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    """(q_BTHD, k_BTHD, v_BTHE) of normalised x, under sequence parallelism of a part of its tokens;
    what comes out is of all tokens."""
    part, rotary = config.latent, config.rotary
    assert part is not None and rotary is not None

    def whole(role: str) -> Tensor:
        return parallel.whole(w[role], parallel.sequence_parallel, f"{task}.{role}")

    def down(role: str, norm: str, rest: int = 0) -> list[Tensor]:
        bias = whole(f"{role}.bias") if f"{role}.bias" in w else None
        y = F.linear(x_BTC, whole(role), bias)
        latent, more = y.split([y.shape[-1] - rest, rest], -1)
        return [rms_norm(latent, whole(norm), LATENT_NORM_EPS), more]

    query = down("query_down", "query_norm")[0] if part.query_rank else x_BTC
    pieces = [query, *down("latent_down", "latent_norm", part.rope)]
    # One collective brings all three to where heads are split.
    together = parallel.into(torch.cat(pieces, -1), task)
    query, latent, k_rope = together.split([piece.shape[-1] for piece in pieces], -1)
    q = column(w, "query", query).unflatten(-1, (-1, part.nope + part.rope))
    q_nope, q_rope = q.split([part.nope, part.rope], -1)
    kv = column(w, "latent_up", latent).unflatten(-1, (-1, part.nope + part.value))
    k_nope, v = kv.split([part.nope, part.value], -1)
    k_rope = rotate(k_rope[..., None, :], *turn, rotary.interleaved)
    k_rope = k_rope.expand(*k_nope.shape[:-1], part.rope)
    q = torch.cat([q_nope, rotate(q_rope, *turn, rotary.interleaved)], -1)
    return q, torch.cat([k_nope, k_rope], -1), v
