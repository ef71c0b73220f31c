"""Families whose layers hold experts: Mixtral, Qwen3-MoE, GLM-4-MoE, MiniMax-M2."""

from typing import Any

from engine.models.config import Experts, ModelConfig
from engine.models.families.common import common_fields, window_size
from engine.models.families.fields import MOST_EXPERTS, MOST_LAYERS, Fields
from engine.models.families.rope_fields import read_rotary


def mixtral(fields: Fields, common: dict[str, Any]) -> ModelConfig:
    """Mixtral (arXiv 2401.04088): every layer routes to experts."""
    layers = fields.count("num_hidden_layers", high=MOST_LAYERS)
    experts = Experts(
        count=fields.count("num_local_experts", 8, high=MOST_EXPERTS),
        per_token=fields.count("num_experts_per_tok", 2),
        width=fields.count("intermediate_size"),
        names="block_sparse_moe",
    )
    own: dict[str, Any] = {"experts": experts, "expert_layers": (True,) * layers}
    own |= {"windows": (window_size(fields),) * layers}
    rotary = read_rotary(fields, common_fields(fields)["head_dim"], theta=1e6)
    return ModelConfig(**common, **common_fields(fields, **own, rotary=rotary))


def qwen3_moe(fields: Fields, common: dict[str, Any]) -> ModelConfig:
    """Qwen3-MoE: Qwen3's attention, experts on most layers."""
    bias = fields.flag("attention_bias")
    layers = fields.count("num_hidden_layers", high=MOST_LAYERS)
    own: dict[str, Any] = {"qkv_bias": bias, "out_bias": bias, "qk_norm": True}
    window = fields.count("sliding_window", 4096) if fields.flag("use_sliding_window") else 0
    own["windows"] = (window,) * layers
    own["expert_layers"] = routed_layers(fields, layers)
    own["experts"] = Experts(
        count=fields.count(
            "num_experts", fields.raw.get("num_local_experts") or 128, high=MOST_EXPERTS
        ),
        per_token=fields.count("num_experts_per_tok", 8),
        width=fields.count("moe_intermediate_size", 768),
        normalize=fields.flag("norm_topk_prob"),
    )
    return ModelConfig(**common, **common_fields(fields, **own))


def routed_layers(fields: Fields, layers: int) -> tuple[bool, ...]:
    """Which layers route to experts, as Qwen's configs say it."""
    step = fields.count("decoder_sparse_step", 1)
    dense = fields.raw.get("mlp_only_layers") or []
    if not isinstance(dense, list) or any(type(layer) is not int for layer in dense):
        raise fields.bad("mlp_only_layers", "must be a list of layer numbers")
    kept = set(dense)
    return tuple(layer not in kept and (layer + 1) % step == 0 for layer in range(layers))


def glm4_moe(fields: Fields, common: dict[str, Any]) -> ModelConfig:
    """GLM-4.5 (arXiv 2508.06471): DeepSeek-V3's router over grouped-query attention."""
    layers = fields.count("num_hidden_layers", high=MOST_LAYERS)
    first = fields.count("first_k_dense_replace", 1, low=0)
    width = fields.count("moe_intermediate_size", 1408)
    experts = Experts(
        count=fields.count("n_routed_experts", 128, high=MOST_EXPERTS),
        per_token=fields.count("num_experts_per_tok", 8),
        width=width,
        shared=width * fields.count("n_shared_experts", 1),
        score="sigmoid",
        normalize=fields.flag("norm_topk_prob", True),
        scaling=fields.number("routed_scaling_factor", 1.0),
        groups=fields.count("n_group", 1),
        top_groups=fields.count("topk_group", 1),
        group_score="top2",
        correction=True,
    )
    head_dim = common_fields(fields, rotary=None)["head_dim"]
    own: dict[str, Any] = {
        "experts": experts,
        "expert_layers": tuple(layer >= first for layer in range(layers)),
        "qkv_bias": fields.flag("attention_bias"),
        "qk_norm": fields.flag("use_qk_norm"),
        "rotary": read_rotary(fields, head_dim, part=0.5),
    }
    return ModelConfig(**common, **common_fields(fields, **own))


def minimax_m2(fields: Fields, common: dict[str, Any]) -> ModelConfig:
    """MiniMax-M2: sigmoid routing with a correction, heads normed at once and rotated in part."""
    layers = fields.count("num_hidden_layers", high=MOST_LAYERS)
    experts = Experts(
        count=fields.count("num_local_experts", 256, high=MOST_EXPERTS),
        per_token=fields.count("num_experts_per_tok", 8),
        width=fields.count("intermediate_size", 1536),
        score="sigmoid",
        correction=True,
        names="block_sparse_moe",
    )
    head_dim = fields.count("head_dim", 128)
    part = min(1.0, fields.count("rotary_dim", head_dim) / head_dim)
    own: dict[str, Any] = {
        "experts": experts,
        "expert_layers": (True,) * layers,
        "head_dim": head_dim,
        "qk_norm": True,
        "qk_norm_whole": True,
        "rotary": read_rotary(fields, head_dim, theta=5_000_000.0, part=part),
    }
    return ModelConfig(**common, **common_fields(fields, **own))
