"""The truth: logits of whole sequences in plain differentiable torch, without a cache.

Weights come under their Hugging Face names. Training differentiates this; every fast path is
compared with it. Shape letters: B sequences, T tokens, C hidden, H query heads, G key/value heads,
D head size, V vocabulary, R latent rank.
"""

from collections.abc import Mapping

import torch
import torch.nn.functional as F
from torch import Tensor

from engine.models.config import ModelConfig
from engine.models.layers import (
    ACTIVATIONS,
    LATENT_NORM_EPS,
    norm,
    rms_norm,
    route,
    softcap,
)
from engine.models.parameters import layer_parameters, outer_parameters, roles
from engine.models.rotary import cos_sin, frequencies, rotate


def dense(config: ModelConfig, weights: Mapping[str, Tensor], tokens_BT: Tensor) -> Tensor:
    """logits_BTV in the weights' dtype for token ids of shape [B, T]."""
    outer = roles(outer_parameters(config), weights)
    B, T = tokens_BT.shape
    x_BTC = F.embedding(tokens_BT, outer["embedding"])
    if config.embedding_scale != 1.0:
        x_BTC = x_BTC * torch.tensor(config.embedding_scale, dtype=x_BTC.dtype)
    turn = None
    if config.rotary is None:
        x_BTC = x_BTC + outer["positions"][:T]
    else:
        turn = _cos_sin(config, T, x_BTC.dtype)
    for layer in range(config.layers):
        x_BTC = _block(config, layer, roles(layer_parameters(config, layer), weights), x_BTC, turn)
    x_BTC = norm(config, x_BTC, outer, "norm")
    return softcap(F.linear(x_BTC, outer.get("head", outer["embedding"])), config.logit_softcap)


Turn = tuple[Tensor, Tensor] | None


def _cos_sin(config: ModelConfig, length: int, dtype: torch.dtype) -> Turn:
    assert config.rotary is not None
    positions_T = torch.arange(length)
    frequencies_F = frequencies(config.rotary, torch.full((length,), length))
    return cos_sin(config.rotary, frequencies_F, positions_T, dtype)


def _block(config: ModelConfig, layer: int, w: dict[str, Tensor], x: Tensor, turn: Turn) -> Tensor:
    attend = _latent_attention if config.latent else _attention
    y = attend(config, layer, w, norm(config, x, w, "attention_norm"), turn)
    x = x + (norm(config, y, w, "attention_post_norm") if config.sandwich else y)
    feed = experts if config.expert_layers[layer] else feed_forward
    y = feed(config, w, norm(config, x, w, "mlp_norm"))
    return x + (norm(config, y, w, "mlp_post_norm") if config.sandwich else y)


def linear(w: dict[str, Tensor], role: str, x: Tensor) -> Tensor:
    """The projection of that role, with its bias where it has one."""
    return F.linear(x, w[role], w.get(f"{role}.bias"))


def _attention(
    config: ModelConfig, layer: int, w: dict[str, Tensor], x_BTC: Tensor, turn: Turn
) -> Tensor:
    q, k, v = (
        linear(w, role, x_BTC).unflatten(-1, (-1, config.head_dim))
        for role in ("query", "key", "value")
    )
    if config.qk_norm:
        q = rms_norm(q, w["query_norm"], config.norm_eps)
        k = rms_norm(k, w["key_norm"], config.norm_eps)
    if turn is not None and config.rotary is not None:
        q = rotate(q, *turn, config.rotary.interleaved)
        k = rotate(k, *turn, config.rotary.interleaved)
    return linear(w, "out", _attend(config, layer, q, k, v).flatten(-2))


def _latent_attention(
    config: ModelConfig, layer: int, w: dict[str, Tensor], x_BTC: Tensor, turn: Turn
) -> Tensor:
    part = config.latent
    assert part is not None and turn is not None and config.rotary is not None
    query = x_BTC
    if part.query_rank:
        query = rms_norm(linear(w, "query_down", x_BTC), w["query_norm"], LATENT_NORM_EPS)
    q = linear(w, "query", query).unflatten(-1, (config.heads, -1))
    q_nope, q_rope = q.split([part.nope, part.rope], dim=-1)
    latent, k_rope = linear(w, "latent_down", x_BTC).split([part.rank, part.rope], dim=-1)
    latent = rms_norm(latent, w["latent_norm"], LATENT_NORM_EPS)
    q_rope = rotate(q_rope, *turn, config.rotary.interleaved)
    k_rope = rotate(k_rope[..., None, :], *turn, config.rotary.interleaved)
    kv = linear(w, "latent_up", latent).unflatten(-1, (config.heads, -1))
    k_nope, v = kv.split([part.nope, part.value], dim=-1)
    q = torch.cat([q_nope, q_rope], dim=-1)
    k = torch.cat([k_nope, k_rope.expand(*k_nope.shape[:-1], part.rope)], dim=-1)
    return linear(w, "out", _attend(config, layer, q, k, v).flatten(-2))


def _attend(config: ModelConfig, layer: int, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Causal attention of q_BTHD over k_BTGD, v_BTGE: o_BTHE, with the layer's window and cap."""
    length = q.shape[1]
    share = q.shape[2] // k.shape[2]
    k, v = k.repeat_interleave(share, dim=2), v.repeat_interleave(share, dim=2)
    scores_BHTS = torch.einsum("bthd,bshd->bhts", q, k) * config.scale(layer)
    scores_BHTS = softcap(scores_BHTS, config.attention_softcap)
    back_TS = torch.arange(length)[:, None] - torch.arange(length)
    window = config.windows[layer] or length
    hidden_TS = ((back_TS < 0) | (back_TS >= window)).to(q.device)
    weights = scores_BHTS.masked_fill(hidden_TS, float("-inf")).softmax(-1, dtype=torch.float32)
    return torch.einsum("bhts,bshe->bthe", weights.to(q.dtype), v)


def feed_forward(config: ModelConfig, w: dict[str, Tensor], x: Tensor, prefix: str = "") -> Tensor:
    """The dense feed-forward of normalised x; `prefix` picks an expert."""
    act = ACTIVATIONS[config.activation]
    up = linear(w, f"{prefix}up", x)
    inner = act(linear(w, f"{prefix}gate", x)) * up if config.gated else act(up)
    return linear(w, f"{prefix}down", inner)


def experts(config: ModelConfig, w: dict[str, Tensor], x_BTC: Tensor) -> Tensor:
    """The mixture of experts of normalised x."""
    moe = config.experts
    assert moe is not None
    x_TC = x_BTC.flatten(0, -2)
    index_TK, weight_TK = route(moe, linear(w, "router", x_TC), w.get("correction"))
    y_TC = torch.zeros_like(x_TC)
    for expert in index_TK.unique().tolist():
        token, rank = (index_TK == expert).nonzero(as_tuple=True)
        out = feed_forward(config, w, x_TC[token], f"experts.{expert}.")
        scaled = out * weight_TK[token, rank, None].to(out.dtype)
        # Under autocast products are narrower than what they are added to.
        y_TC = y_TC.index_add(0, token, scaled.to(y_TC.dtype))
    if moe.shared:
        y_TC = y_TC + feed_forward(config, w, x_TC, "shared.")
    return y_TC.view_as(x_BTC)
