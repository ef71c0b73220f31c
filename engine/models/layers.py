"""Layer functions that every path shares: norms, activations, the choice of experts; and layers in
plain differentiable torch whose weights come by role: projections, experts, recurrent layers,
latent attention.

Shape letters: T tokens, C hidden size, L layers, E experts or numbers for each layer, K experts
for each token, G groups of experts.
"""

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor

from engine.kernels.recurrent import delta_rule, mamba2
from engine.kernels.recurrent.sizes import state_shapes
from engine.kernels.recurrent.state import Held, float32_at_least
from engine.kernels.token_index import best, scores
from engine.models.config import Experts, ModelConfig
from engine.models.duo.routes import PREFIX, Routes
from engine.models.rotary import rotate

Turn = tuple[Tensor, Tensor] | None  # cosine and sine

ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "silu": F.silu,
    "gelu": F.gelu,
    "gelu_tanh": lambda x: F.gelu(x, approximate="tanh"),
    "relu": F.relu,
    "relu2": lambda x: F.relu(x).square(),
}
MEAN = 2.0**-0.5  # of two numbers that vary as much as either
LATENT_NORM_EPS = 1e-6  # DeepSeek's inner norms keep this whatever `rms_norm_eps` says


def rms_norm(x_TC: Tensor, weight_C: Tensor, eps: float) -> Tensor:
    """x / rms(x) · weight over the last axis, computed in float32 at least."""
    wide = float32_at_least(x_TC)
    wide = wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + eps)
    return (weight_C * wide.to(weight_C.dtype)).to(x_TC.dtype)


def gated(config: ModelConfig, gate: Tensor, up: Tensor) -> Tensor:
    """act(gate) * up, or clamped as gpt-oss has it (arXiv 2508.10925, its SwiGLU)."""
    limit = config.glu_limit
    if not limit:
        return ACTIVATIONS[config.activation](gate) * up
    gate = gate.clamp(max=limit)
    # A gap between rows: of numbers that lie together torch takes the last few by another
    # exponential than the rest, and which those are would depend on who else is in the batch.
    apart = F.pad(gate * config.glu_gain, (0, 1))[..., :-1]
    return (up.clamp(-limit, limit) + 1) * gate * torch.sigmoid(apart)


def norm(config: ModelConfig, x_TC: Tensor, by_role: dict[str, Tensor], role: str) -> Tensor:
    """The config's norm with the weights of `role`."""
    weight = by_role[role]
    if config.norm == "layer":
        return F.layer_norm(x_TC, weight.shape, weight, by_role[f"{role}.bias"], config.norm_eps)
    if config.norm_offset:
        weight = float32_at_least(weight) + config.norm_offset
    return rms_norm(x_TC, weight, config.norm_eps)


def softcap(x: Tensor, cap: float) -> Tensor:
    """cap · tanh(x / cap): near x inside the cap, never beyond it (Gemma-2, arXiv 2408.00118)."""
    return torch.tanh(x / cap) * cap if cap else x


def mixed_inputs(
    config: ModelConfig, own_TX: Tensor, projected_TX: Tensor, weight_E: Tensor
) -> Tensor:
    """Inputs of shape [..., T, L, E] from embeddings and projections of [..., T, L·E]."""
    part = config.layer_inputs
    assert part is not None
    own, projected = (x.unflatten(-1, (-1, part.size)) for x in (own_TX, projected_TX))
    own = own * torch.tensor(part.size**0.5, dtype=own.dtype)
    found = rms_norm(projected * config.hidden**-0.5, weight_E, config.norm_eps)
    return (found + own) * MEAN


def finished(config: ModelConfig, logits: Tensor) -> Tensor:
    """Logits as they leave the head, scaled and capped as the config says."""
    if config.logit_scale != 1.0:
        logits = logits * config.logit_scale
    return softcap(logits, config.logit_softcap)


def asked(config: ModelConfig, x: Tensor, scale_C: Tensor) -> Tensor:
    """What a router beside a feed-forward reads of a layer's x (Gemma-4)."""
    return rms_norm(x, scale_C * config.hidden**-0.5, config.norm_eps)


def route(
    experts: Experts,
    scores_TE: Tensor,
    correction_E: Tensor | None,
    gain_E: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """Each token's experts and their weights, (index_TK, weight_TK), from router outputs; `gain_E`
    multiplies the weights of each expert."""
    scores_TE = float32_at_least(scores_TE)
    scores_TE = scores_TE.softmax(-1) if experts.score == "softmax" else scores_TE.sigmoid()
    choice_TE = scores_TE if correction_E is None else scores_TE + float32_at_least(correction_E)
    if experts.groups > 1:
        choice_TE = _best_groups(experts, choice_TE)
    index_TK = choice_TE.topk(experts.per_token, dim=-1).indices
    weight_TK = scores_TE.gather(-1, index_TK)
    if experts.normalize:
        weight_TK = weight_TK / (weight_TK.sum(-1, keepdim=True) + 1e-20)
    if gain_E is not None:
        weight_TK = weight_TK * gain_E[index_TK]
    return index_TK, weight_TK * experts.scaling


def _best_groups(experts: Experts, choice_TE: Tensor) -> Tensor:
    """Experts outside the best groups can no longer be chosen."""
    grouped_TGE = choice_TE.unflatten(-1, (experts.groups, -1))
    best = 1 if experts.group_score == "max" else 2
    worth_TG = grouped_TGE.topk(best, dim=-1).values.sum(-1)
    kept_TG = torch.zeros_like(worth_TG, dtype=torch.bool)
    kept_TG.scatter_(-1, worth_TG.topk(experts.top_groups, dim=-1).indices, True)
    return grouped_TGE.masked_fill(~kept_TG[..., None], float("-inf")).flatten(-2)


def linear(w: dict[str, Tensor], role: str, x: Tensor) -> Tensor:
    """The projection of that role, with its bias where it has one."""
    return F.linear(x, w[role], w.get(f"{role}.bias"))


def feed_forward(config: ModelConfig, w: dict[str, Tensor], x: Tensor, prefix: str = "") -> Tensor:
    """The dense feed-forward of normalised x; `prefix` picks an expert."""
    act, up = ACTIVATIONS[config.activation], linear(w, f"{prefix}up", x)
    inner = gated(config, linear(w, f"{prefix}gate", x), up) if config.gated else act(up)
    return linear(w, f"{prefix}down", inner)


def duo_feed_forward(
    config: ModelConfig, layer: int, w: dict[str, Tensor], x: Tensor, routes: Routes
) -> Tensor:
    """What a layer's modules add to normalised x, in differentiable torch: both are computed for
    every token, and the one that was taken is kept."""
    choice = routes.take(layer, lambda: linear(w, "router", x))
    both = (feed_forward(config, w, x, prefix) * (choice == which)[..., None]
            for which, prefix in PREFIX.items())  # fmt: skip
    return sum(both, torch.zeros_like(x))


def beside(config: ModelConfig, w: dict[str, Tensor], x_BTC: Tensor) -> Tensor:
    """A feed-forward and experts, each between norms of its own, for a layer's x as it is."""
    dense = feed_forward(config, w, norm(config, x_BTC, w, "mlp_norm"))
    read = asked(config, x_BTC, w["router_scale"])
    mixed = experts(config, w, norm(config, x_BTC, w, "experts_norm"), read)
    dense = norm(config, dense, w, "dense_post_norm")
    return dense + norm(config, mixed, w, "experts_post_norm")


def experts(
    config: ModelConfig, w: dict[str, Tensor], x_BTC: Tensor, read_BTC: Tensor | None = None
) -> Tensor:
    """The mixture of experts of normalised x; `read_BTC`: what the router reads, where not x."""
    moe = config.experts
    assert moe is not None
    x_TC = x_BTC.flatten(0, -2)
    scores_TE = linear(w, "router", x_TC if read_BTC is None else read_BTC.flatten(0, -2))
    index_TK, weight_TK = route(moe, scores_TE, w.get("correction"), w.get("router_gain"))
    inner_TC = linear(w, "latent_in", x_TC) if moe.latent else x_TC
    y_TC = torch.zeros_like(inner_TC)
    for expert in index_TK.unique().tolist():
        token, rank = (index_TK == expert).nonzero(as_tuple=True)
        out = feed_forward(config, w, inner_TC[token], f"experts.{expert}.")
        scaled = out * weight_TK[token, rank, None].to(out.dtype)
        # Under autocast products are narrower than what they are added to.
        y_TC = y_TC.index_add(0, token, scaled.to(y_TC.dtype))
    y_TC = linear(w, "latent_out", y_TC) if moe.latent else y_TC
    if moe.shared:
        shared = feed_forward(config, w, x_TC, "shared.")
        if moe.shared_gate:
            shared = shared * linear(w, "shared.open", x_TC).sigmoid()
        y_TC = y_TC + shared
    return y_TC.view_as(x_BTC)


def recurrence(
    config: ModelConfig, _layer: int, w: dict[str, Tensor], x_BTC: Tensor, _order: object
) -> Tensor:
    """A recurrent layer over whole sequences of normalised x, token by token from empty states."""
    part, eps = config.recurrence, config.norm_eps
    assert part is not None
    held = Held(*(x_BTC.new_zeros(len(x_BTC), *shape) for _, shape in state_shapes(part)))
    if isinstance(part, mamba2.Mamba):
        names = ("convolution.bias", "step_bias", "decay", "skip", "mamba_norm")
        given = mamba2.projected(part, linear(w, "mamba", x_BTC))
        kept = mamba2.Fixed(w["convolution"], *(w.get(name) for name in names))  # type: ignore[arg-type]
        o_BTX, _ = mamba2.attended(part, kept, given, held, eps, mamba2.scan)
        return linear(w, "out", o_BTX)
    into, rates = (
        torch.cat([linear(w, role, x_BTC) for role in pair if role in w], dim=-1)
        for pair in (("delta", "delta_gate"), ("rates", "rates_decay"))
    )
    fixed = delta_rule.Fixed(w["convolution"], w["step_bias"], w["decay"], w["delta_norm"])
    said = delta_rule.projected(part, into, rates)
    o_BTX, _ = delta_rule.attended(part, fixed, said, held, eps, delta_rule.recur)
    return linear(w, "out", o_BTX)


def latent_queries(config: ModelConfig, w: dict[str, Tensor], x_BTC: Tensor, turn: Turn) -> Tensor:
    part = config.latent
    assert part is not None and turn is not None and config.rotary is not None
    if part.query_rank:
        x_BTC = rms_norm(linear(w, "query_down", x_BTC), w["query_norm"], LATENT_NORM_EPS)
    q = linear(w, "query", x_BTC).unflatten(-1, (-1, part.nope + part.rope))
    q_nope, q_rope = q.split([part.nope, part.rope], dim=-1)
    return torch.cat([q_nope, rotate(q_rope, *turn, config.rotary.interleaved)], dim=-1)


def latent_keys_values(
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


def kept(
    config: ModelConfig,
    w: dict[str, Tensor],
    x_BTC: Tensor,
    turn: tuple[Tensor, Tensor],
    hidden_BTS: Tensor,
) -> Tensor:
    """Which tokens each attends to (bool [B, T, S]): the best that its index finds."""
    part, latent = config.index, config.latent
    assert part is not None and latent is not None
    short = rms_norm(linear(w, "query_down", x_BTC), w["query_norm"], LATENT_NORM_EPS)
    q = linear(w, "index_query", short).unflatten(-1, (part.heads, part.size))
    k, weight = linear(w, "index_key", x_BTC), w["index_norm"]
    k = F.layer_norm(k, weight.shape, weight, w["index_norm.bias"], LATENT_NORM_EPS)[..., None, :]
    q, k = (
        torch.cat([rotate(x[..., : latent.rope], *turn, part.interleaved), rest], -1)
        for x in (q, k)
        for rest in (x[..., latent.rope :],)
    )
    score_BTS = scores(q, k[..., 0, :], linear(w, "index_weight", x_BTC))
    index_BTK, seen_BTK = best(score_BTS, hidden_BTS, part.kept)
    return torch.zeros_like(hidden_BTS).scatter(-1, index_BTK, seen_BTK)
