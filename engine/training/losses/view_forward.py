"""Logits of examples in which a block of tokens is seen from different places by different tokens.

Keys are turned by their places in their own blocks, queries once for each block they look at; it is
plain differentiable torch. Shape letters as in `engine.models.reference`, and K blocks.
"""

from collections.abc import Mapping

import torch
from torch import Tensor

from engine.models.config import ModelConfig
from engine.models.layers import feed_forward, linear, norm
from engine.models.parameters import layer_parameters, roles
from engine.models.reference import embed, head, keys_values, ordered, queries


def logits(
    config: ModelConfig, weights: Mapping[str, Tensor], tokens_BT: Tensor, positions_BT: Tensor,
    visible_BTS: Tensor, block_BT: Tensor, shift_BTK: Tensor,
) -> Tensor:  # fmt: skip
    """logits_BTV; `positions_BT` count in each block, `shift_BTK`: how far before a token's own
    block it sees block k begin. For models without windows, experts and norms after layers."""
    x_BTC = embed(config, weights, tokens_BT, positions_BT)
    turns = [
        ordered(config, x_BTC, positions_BT + shift_BTK[..., block]).turn
        for block in range(shift_BTK.shape[-1])
    ]
    own = ordered(config, x_BTC, positions_BT).turn
    for layer in range(config.layers):
        w = roles(layer_parameters(config, layer), weights)
        y_BTC = norm(config, x_BTC, w, "attention_norm")
        k, v = keys_values(config, w, y_BTC, own)
        share = config.heads // config.kv_heads
        k, v = k.repeat_interleave(share, dim=2), v.repeat_interleave(share, dim=2)
        scores = torch.zeros((), dtype=k.dtype)
        for block, turn in enumerate(turns):
            here_BT = block_BT == block
            q = queries(config, w, y_BTC, turn)
            masked = k * here_BT[..., None, None]
            scores = scores + torch.einsum("bthd,bshd->bhts", q, masked)
        scores = (scores * config.scale(layer)).masked_fill(~visible_BTS[:, None], float("-inf"))
        mixed = torch.einsum("bhts,bshe->bthe", scores.float().softmax(-1).to(v.dtype), v)
        x_BTC = x_BTC + linear(w, "out", mixed.flatten(-2))
        x_BTC = x_BTC + feed_forward(config, w, norm(config, x_BTC, w, "mlp_norm"))
    return head(config, weights, x_BTC)
