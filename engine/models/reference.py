"""Reference model: logits of whole sequences in plain differentiable torch, without a cache.

Weights come under their Hugging Face names. Training differentiates this; every fast path is
compared with it. Shape letters: B sequences, T tokens, C hidden, H query heads, G key/value heads,
D head size, V vocabulary, R latent rank, S tokens attended to.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

import torch
import torch.nn.functional as F
from torch import Tensor

from engine.kernels.token_index import best, scores
from engine.models.config import ModelConfig, Rotary
from engine.models.layers import (
    LATENT_NORM_EPS,
    experts,
    feed_forward,
    finished,
    float32_at_least,
    linear,
    norm,
    recurrence,
    rms_norm,
    softcap,
)
from engine.models.parallel_streams import behind_prefix, mixed, spread
from engine.models.parameters import layer_parameters, outer_parameters, roles
from engine.models.rotary import cos_sin, frequencies, rotate

Turn = tuple[Tensor, Tensor] | None  # cosine and sine


@dataclass(frozen=True, slots=True)
class Order:
    """What all layers share: each token's turn and position, whom it sees where not causal, and
    its path of thought, from 1 on (0: none)."""

    turn: Turn
    local: Turn  # of layers whose rotation is another
    positions_BT: Tensor  # or [1, T]
    visible_BTS: Tensor | None = None
    paths_BT: Tensor | None = None


def dense(
    config: ModelConfig,
    weights: Mapping[str, Tensor],
    tokens_BT: Tensor,
    *,
    positions_BT: Tensor | None = None,
    visible_BTS: Tensor | None = None,
    paths_BT: Tensor | None = None,
) -> Tensor:
    """logits_BTV in the weights' dtype for token ids of shape [B, T].

    `positions_BT` in place of 0, 1, 2 …; `visible_BTS` (bool, every row with a True) in place of
    causal order. Sliding windows count positions. `paths_BT`: the path of thought whose embedding
    each token's keys and values carry, 0 for none.
    """
    x_BTC = spread(config, embed(config, weights, tokens_BT, positions_BT))
    order = ordered(config, x_BTC, positions_BT, visible_BTS, paths_BT)
    x_BTC = blocks(config, weights, x_BTC, range(config.layers), order)
    return head(config, weights, x_BTC)


def embed(
    config: ModelConfig,
    weights: Mapping[str, Tensor],
    tokens_BT: Tensor,
    positions_BT: Tensor | None = None,
) -> Tensor:
    """x_BTC of token ids, before the first layer; only the outer weights it needs are asked for."""
    outer = _outer(config, weights)
    x_BTC = F.embedding(tokens_BT, outer["embedding"])
    if config.embedding_scale != 1.0:
        x_BTC = x_BTC * torch.tensor(config.embedding_scale, dtype=x_BTC.dtype)
    if config.rotary is None:
        if positions_BT is None:
            positions_BT = _counted(x_BTC)
        x_BTC = x_BTC + outer["positions"][positions_BT]
    return x_BTC


def blocks(
    config: ModelConfig,
    weights: Mapping[str, Tensor],
    x_BTC: Tensor,
    layers: Iterable[int],
    order: Order | None = None,
) -> Tensor:
    """x_BTC after these layers one after the other; causal where no `order` is given."""
    order = order or ordered(config, x_BTC)
    for layer in layers:
        x_BTC = _block(config, layer, roles(layer_parameters(config, layer), weights), x_BTC, order)
    return x_BTC


def head(config: ModelConfig, weights: Mapping[str, Tensor], x_BTC: Tensor) -> Tensor:
    """logits_BTV of what the last layer gave."""
    outer = _outer(config, weights)
    x_BTC = mixed(config, outer, norm(config, x_BTC, outer, "norm"))
    return finished(config, F.linear(x_BTC, outer["head" if "head" in outer else "embedding"]))


def ordered(
    config: ModelConfig,
    x_BTC: Tensor,
    positions_BT: Tensor | None = None,
    visible_BTS: Tensor | None = None,
    paths_BT: Tensor | None = None,
) -> Order:
    """What the layers share for tokens of x's shape and dtype."""
    positions_BT = _counted(x_BTC) if positions_BT is None else positions_BT
    turn, local = (
        None if rotary is None else _cos_sin(rotary, positions_BT, x_BTC.dtype)
        for rotary in (config.rotary, config.local_rotary)
    )  # fmt: skip
    return Order(turn, local, positions_BT, visible_BTS, paths_BT)


def _outer(config: ModelConfig, weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """By role, those that are there: a stage of a pipeline has only its own."""
    return roles([p for p in outer_parameters(config) if p.name in weights], weights)


def _counted(x_BTC: Tensor) -> Tensor:
    return torch.arange(x_BTC.shape[1], device=x_BTC.device)[None]


def _cos_sin(rotary: Rotary, positions_BT: Tensor, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    rows, length = positions_BT.shape
    flat_T = positions_BT.flatten()
    frequencies_F = frequencies(rotary, torch.full_like(flat_T, length))
    cos, sin = cos_sin(rotary, frequencies_F, flat_T, dtype)
    return cos.unflatten(0, (rows, length)), sin.unflatten(0, (rows, length))


def _block(
    config: ModelConfig, layer: int, w: dict[str, Tensor], x: Tensor, order: Order
) -> Tensor:
    before = norm if config.pre_norm else _unchanged
    mix = recurrence if config.keeps_state(layer) else attention
    y = mix(config, layer, w, before(config, x, w, "attention_norm"), order)
    y = norm(config, y, w, "attention_post_norm") if config.sandwich else y
    x = x + y * config.residual_scale
    feed = experts if config.expert_layers[layer] else feed_forward
    y = feed(config, w, before(config, x, w, "mlp_norm"))
    y = norm(config, y, w, "mlp_post_norm") if config.sandwich else y
    return x + y * config.residual_scale


def _unchanged(_config: ModelConfig, x: Tensor, *_: object) -> Tensor:
    """In the place of a norm that is not there."""
    return x


def attention(
    config: ModelConfig, layer: int, w: dict[str, Tensor], x_BTC: Tensor, order: Order
) -> Tensor:
    """y_BTC of normalised x, what a layer's attention adds."""
    turn = {"main": order.turn, "local": order.local}.get(config.rotation(layer))
    q = queries(config, w, x_BTC, turn)
    k, v = behind_prefix(w, *keys_values(config, w, x_BTC, turn, order.paths_BT))
    if config.index is not None and x_BTC.shape[1] > config.index.kept:
        order = replace(order, visible_BTS=_kept(config, w, x_BTC, order))
    o = _attend(config, layer, q, k, v, order, w.get("sinks"))
    if config.query_gate:
        gate = linear(w, "query", x_BTC).unflatten(-1, (-1, 2 * config.head_dim))
        o = o * gate[..., config.head_dim :].sigmoid()
    return linear(w, "out", o.flatten(-2))


def queries(config: ModelConfig, w: dict[str, Tensor], x_BTC: Tensor, turn: Turn) -> Tensor:
    """q_BTHD of normalised x, each token by itself; `turn` is of these tokens."""
    if config.latent is not None:
        return _latent_queries(config, w, x_BTC, turn)
    each = config.head_dim * (2 if config.query_gate else 1)  # a head's gate lies behind it
    q = linear(w, "query", x_BTC).unflatten(-1, (-1, each))[..., : config.head_dim]
    if config.qk_norm:
        q = _head_norm(config, q, w["query_norm"])
    if turn is not None and config.rotary is not None:
        q = _rotated(config.rotary, q, turn)
    return q


def keys_values(
    config: ModelConfig,
    w: dict[str, Tensor],
    x_BTC: Tensor,
    turn: Turn,
    paths_BT: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """k_BTGD and v_BTGE of normalised x, each token by itself."""
    if config.latent is not None:
        return _latent_keys_values(config, w, x_BTC, turn)
    k, v = (
        linear(w, role, x_BTC).unflatten(-1, (-1, config.head_dim)) for role in ("key", "value")
    )
    if config.qk_norm:
        k = _head_norm(config, k, w["key_norm"])
    if config.paths and paths_BT is not None:
        k, v = (
            x + F.pad(w[role], (0, 0, 1, 0))[paths_BT].view_as(x).to(x.dtype)
            for role, x in (("path_key", k), ("path_value", v))
        )
    if turn is not None and config.rotary is not None:
        k = _rotated(config.rotary, k, turn)
    return k, v


def _head_norm(config: ModelConfig, x_BTHD: Tensor, weight: Tensor) -> Tensor:
    """Query or key heads normed one by one, or all of a token's at once."""
    if config.norm_offset:
        weight = float32_at_least(weight) + config.norm_offset
    if config.qk_norm_whole:
        return rms_norm(x_BTHD.flatten(-2), weight, config.norm_eps).view_as(x_BTHD)
    return rms_norm(x_BTHD, weight, config.norm_eps)


def _rotated(rotary: Rotary, x_BTHD: Tensor, turn: tuple[Tensor, Tensor]) -> Tensor:
    """Heads turned; what of a head is beyond the rotated dimensions stays."""
    first, rest = x_BTHD[..., : rotary.dim], x_BTHD[..., rotary.dim :]
    turned = rotate(first, *turn, rotary.interleaved)
    return torch.cat([turned, rest], -1) if rest.shape[-1] else turned


def _latent_queries(config: ModelConfig, w: dict[str, Tensor], x_BTC: Tensor, turn: Turn) -> Tensor:
    part = config.latent
    assert part is not None and turn is not None and config.rotary is not None
    if part.query_rank:
        x_BTC = rms_norm(linear(w, "query_down", x_BTC), w["query_norm"], LATENT_NORM_EPS)
    q = linear(w, "query", x_BTC).unflatten(-1, (-1, part.nope + part.rope))
    q_nope, q_rope = q.split([part.nope, part.rope], dim=-1)
    return torch.cat([q_nope, rotate(q_rope, *turn, config.rotary.interleaved)], dim=-1)


def _latent_keys_values(
    config: ModelConfig, w: dict[str, Tensor], x_BTC: Tensor, turn: Turn
) -> tuple[Tensor, Tensor]:
    part = config.latent
    assert part is not None and turn is not None and config.rotary is not None
    latent, k_rope = linear(w, "latent_down", x_BTC).split([part.rank, part.rope], dim=-1)
    latent = rms_norm(latent, w["latent_norm"], LATENT_NORM_EPS)
    k_rope = rotate(k_rope[..., None, :], *turn, config.rotary.interleaved)
    kv = linear(w, "latent_up", latent).unflatten(-1, (-1, part.nope + part.value))
    k_nope, v = kv.split([part.nope, part.value], dim=-1)
    k_rope = k_rope.expand(*k_nope.shape[:-1], part.rope)
    return torch.cat([k_nope, k_rope], dim=-1), v


def _kept(config: ModelConfig, w: dict[str, Tensor], x_BTC: Tensor, order: Order) -> Tensor:
    """Which tokens each attends to (bool [B, T, S]): the best that its index finds."""
    part, latent = config.index, config.latent
    assert part is not None and latent is not None and order.turn is not None
    short = rms_norm(linear(w, "query_down", x_BTC), w["query_norm"], LATENT_NORM_EPS)
    q = linear(w, "index_query", short).unflatten(-1, (part.heads, part.size))
    k, weight = linear(w, "index_key", x_BTC), w["index_norm"]
    k = F.layer_norm(k, weight.shape, weight, w["index_norm.bias"], LATENT_NORM_EPS)[..., None, :]
    q, k = (
        torch.cat([rotate(x[..., : latent.rope], *order.turn, part.interleaved), rest], -1)
        for x in (q, k)
        for rest in (x[..., latent.rope :],)
    )
    hidden_BTS = _hidden(0, order, 0)[:, 0].expand(len(x_BTC), -1, -1).to(q.device)
    score_BTS = scores(q, k[..., 0, :], linear(w, "index_weight", x_BTC))
    index_BTK, seen_BTK = best(score_BTS, hidden_BTS, part.kept)
    return torch.zeros_like(hidden_BTS).scatter(-1, index_BTK, seen_BTK)


def _attend(
    config: ModelConfig, layer: int, q: Tensor, k: Tensor, v: Tensor, order: Order,
    sinks_H: Tensor | None,
) -> Tensor:  # fmt: skip
    """Attention of q_BTHD over k_BTGD, v_BTGE: o_BTHE, with the layer's window, cap and sinks."""
    k, v = (x.repeat_interleave(q.shape[2] // x.shape[2], dim=2) for x in (k, v))
    scores_BHTS = torch.einsum("bthd,bshd->bhts", q, k) * config.scale(layer)
    hidden = _hidden(config.windows[layer], order, k.shape[1] - q.shape[1]).to(q.device)
    scores_BHTS = softcap(scores_BHTS, config.attention_softcap).masked_fill(hidden, float("-inf"))
    if sinks_H is not None:
        sinks_BHT1 = sinks_H[:, None, None].expand(*scores_BHTS.shape[:3], 1)
        scores_BHTS = torch.cat([scores_BHTS, sinks_BHT1], dim=-1)
    weights = scores_BHTS.softmax(-1, dtype=float32_at_least(q[:0]).dtype)
    return torch.einsum("bhts,bshe->bthe", weights[..., : k.shape[1]].to(q.dtype), v)


def _hidden(window: int, order: Order, prefix: int) -> Tensor:
    """Whom no token sees, of shape [B or 1, 1, T, S]; all see the prefix."""
    positions_BT = order.positions_BT
    if order.visible_BTS is not None:
        hidden_BTS = ~order.visible_BTS
    else:
        place_T = torch.arange(positions_BT.shape[1], device=positions_BT.device)
        hidden_BTS = (place_T[:, None] < place_T)[None]
    if window:
        back_BTS = positions_BT[:, :, None] - positions_BT[:, None]
        hidden_BTS = hidden_BTS | (back_BTS >= window)
    return F.pad(hidden_BTS, (prefix, 0))[:, None]
