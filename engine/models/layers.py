"""Layer functions that every path shares: norms, activations, the choice of experts; and layers in
plain differentiable torch whose weights come by role: projections, experts, recurrent layers.

Shape letters: T tokens, C hidden size, E experts, K experts for each token, G groups of experts.
"""

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor

from engine.kernels.delta_rule import (
    Fixed,
    Held,
    attended,
    float32_at_least,
    projected,
    state_shapes,
)
from engine.models.config import Experts, ModelConfig

ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "silu": F.silu,
    "gelu": F.gelu,
    "gelu_tanh": lambda x: F.gelu(x, approximate="tanh"),
    "relu": F.relu,
}
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


def finished(config: ModelConfig, logits: Tensor) -> Tensor:
    """Logits as they leave the head, scaled and capped as the config says."""
    if config.logit_scale != 1.0:
        logits = logits * config.logit_scale
    return softcap(logits, config.logit_softcap)


def route(
    experts: Experts, scores_TE: Tensor, correction_E: Tensor | None
) -> tuple[Tensor, Tensor]:
    """Each token's experts and their weights, (index_TK, weight_TK), from router outputs."""
    scores_TE = float32_at_least(scores_TE)
    scores_TE = scores_TE.softmax(-1) if experts.score == "softmax" else scores_TE.sigmoid()
    choice_TE = scores_TE if correction_E is None else scores_TE + float32_at_least(correction_E)
    if experts.groups > 1:
        choice_TE = _best_groups(experts, choice_TE)
    index_TK = choice_TE.topk(experts.per_token, dim=-1).indices
    weight_TK = scores_TE.gather(-1, index_TK)
    if experts.normalize:
        weight_TK = weight_TK / (weight_TK.sum(-1, keepdim=True) + 1e-20)
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
        shared = feed_forward(config, w, x_TC, "shared.")
        if moe.shared_gate:
            shared = shared * linear(w, "shared.open", x_TC).sigmoid()
        y_TC = y_TC + shared
    return y_TC.view_as(x_BTC)


def recurrence(
    config: ModelConfig, _layer: int, w: dict[str, Tensor], x_BTC: Tensor, _order: object
) -> Tensor:
    """The gated delta rule over whole sequences of normalised x, from empty states."""
    part = config.delta
    assert part is not None
    into, rates = (
        torch.cat([linear(w, role, x_BTC) for role in pair if role in w], dim=-1)
        for pair in (("delta", "delta_gate"), ("rates", "rates_decay"))
    )
    held = (x_BTC.new_zeros(len(x_BTC), *shape) for _, shape in state_shapes(part))
    fixed = Fixed(w["convolution"], w["step_bias"], w["decay"], w["delta_norm"])
    said = projected(part, into, rates)
    return linear(w, "out", attended(part, fixed, said, Held(*held), config.norm_eps)[0])
