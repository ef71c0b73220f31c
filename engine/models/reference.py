"""Reference model: logits of whole sequences in plain differentiable torch, without a cache.

Weights come under their Hugging Face names. Training differentiates this; every fast path is
compared with it. Shape letters: B sequences, T tokens, C hidden, H query heads, G key/value heads,
D head size, V vocabulary, R latent rank, S tokens attended to.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

import torch
import torch.nn.functional as F
from torch import Tensor

from engine.models.config import ModelConfig, Rotary
from engine.models.duo.routes import Routes
from engine.models.layers import (
    ACTIVATIONS,
    Turn,
    beside,
    duo_feed_forward,
    experts,
    feed_forward,
    finished,
    float32_at_least,
    kept,
    latent_keys_values,
    latent_queries,
    linear,
    mixed_inputs,
    norm,
    recurrence,
    rms_norm,
    softcap,
)
from engine.models.parallel_streams import behind_prefix, mixed, spread
from engine.models.parameters import layer_parameters, outer_parameters, roles
from engine.models.rotary import cos_sin, frequencies, rotate


@dataclass(frozen=True, slots=True)
class Order:
    """What all layers share: each token's turn and position, whom it sees where not causal, and
    its path of thought, from 1 on (0: none)."""

    turn: Turn
    local: Turn  # of layers whose rotation is another
    positions_BT: Tensor  # or [1, T]
    visible_BTS: Tensor | None = None
    paths_BT: Tensor | None = None
    inputs_BTLE: Tensor | None = None  # what each layer is told of each token besides
    routes: Routes | None = None  # where each layer has feed-forwards of two sizes
    shared: dict[int, tuple[Tensor, Tensor]] = field(default_factory=dict)  # keys, values by layer


def dense(
    config: ModelConfig,
    weights: Mapping[str, Tensor],
    tokens_BT: Tensor,
    *,
    positions_BT: Tensor | None = None,
    visible_BTS: Tensor | None = None,
    paths_BT: Tensor | None = None,
    routes_BTL: Tensor | None = None,
) -> Tensor:
    """logits_BTV in the weights' dtype for token ids of shape [B, T].

    `positions_BT` in place of 0, 1, 2 …; `visible_BTS` (bool, every row with a True) in place of
    causal order. Sliding windows count positions. `paths_BT`: the path of thought whose embedding
    each token's keys and values carry, 0 for none.
    `routes_BTL`: which feed-forward each token takes where a layer has two, in place of the router.
    """
    x_BTC = spread(config, embed(config, weights, tokens_BT, positions_BT))
    order = ordered(config, x_BTC, positions_BT, visible_BTS, paths_BT)
    if config.duo is not None:
        places_BT = order.positions_BT.expand(x_BTC.shape[:2])
        routes = Routes(config.duo, config.layers, places_BT, routes_BTL)
        order = replace(order, routes=routes)
    if config.layer_inputs is not None:
        outer = _outer(config, weights)
        own = F.embedding(tokens_BT, outer["layer_embedding"])
        said = own, linear(outer, "layer_projection", x_BTC), outer["layer_norm"]
        order = replace(order, inputs_BTLE=mixed_inputs(config, *said))
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
    if config.mixes(layer):
        mix = recurrence if config.keeps_state(layer) else attention
        y = mix(config, layer, w, before(config, x, w, "attention_norm"), order)
        y = norm(config, y, w, "attention_post_norm") if config.sandwich else y
        x = x + y * config.residual_scale
    if not config.feeds(layer):
        return x
    if order.routes is not None:
        y = duo_feed_forward(config, layer, w, before(config, x, w, "mlp_norm"), order.routes)
    elif config.fed_twice:
        y = beside(config, w, x)
    else:
        feed = experts if config.expert_layers[layer] else feed_forward
        y = feed(config, w, before(config, x, w, "mlp_norm"))
    y = norm(config, y, w, "mlp_post_norm") if config.sandwich else y
    x = x + y * config.residual_scale
    if order.inputs_BTLE is not None:
        y = ACTIVATIONS[config.activation](linear(w, "input_gate", x))
        y = linear(w, "input_out", y * order.inputs_BTLE[..., layer, :])
        x = x + norm(config, y, w, "input_norm")
    return x * w["layer_scalar"] if config.layer_scale else x


def _unchanged(_config: ModelConfig, x: Tensor, *_: object) -> Tensor:
    """In the place of a norm that is not there."""
    return x


def attention(
    config: ModelConfig, layer: int, w: dict[str, Tensor], x_BTC: Tensor, order: Order
) -> Tensor:
    """y_BTC of normalised x, what a layer's attention adds."""
    turn = {"main": order.turn, "local": order.local}.get(config.rotation(layer))
    q, source = queries(config.at(layer), w, x_BTC, turn), config.source(layer)
    if source == layer:
        k, v = keys_values(config.at(layer), w, x_BTC, turn, order.paths_BT)
        k, v = behind_prefix(w, k, v)
    else:
        k, v = order.shared[source]
    if config.sources:
        order.shared[layer] = k, v
    if config.index is not None and turn is not None and x_BTC.shape[1] > config.index.kept:
        hidden_BTS = _hidden(0, order, 0)[:, 0].expand(len(x_BTC), -1, -1).to(q.device)
        order = replace(order, visible_BTS=kept(config, w, x_BTC, turn, hidden_BTS))
    o = _attend(config, layer, q, k, v, order, w.get("sinks"))
    if config.query_gate:
        gate = linear(w, "query", x_BTC).unflatten(-1, (-1, 2 * config.head_dim))
        o = o * gate[..., config.head_dim :].sigmoid()
    return linear(w, "out", o.flatten(-2))


def queries(config: ModelConfig, w: dict[str, Tensor], x_BTC: Tensor, turn: Turn) -> Tensor:
    """q_BTHD of normalised x, each token by itself; `turn` is of these tokens."""
    if config.latent is not None:
        return latent_queries(config, w, x_BTC, turn)
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
        return latent_keys_values(config, w, x_BTC, turn)
    k, v = (
        linear(w, role, x_BTC).unflatten(-1, (-1, config.head_dim))
        for role in ("key", "key" if config.key_is_value else "value")
    )
    if config.qk_norm:
        k = _head_norm(config, k, w["key_norm"])
    if config.value_norm:
        v = rms_norm(v, v.new_ones(config.head_dim), config.norm_eps)
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
