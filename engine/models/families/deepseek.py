"""DeepSeek-V2 (arXiv 2405.04434) and V3 (arXiv 2412.19437): latent attention and experts."""

from dataclasses import replace
from typing import Any

from engine.models.config import Experts, Index, Latent, ModelConfig, Rotary
from engine.models.families.common import common_fields
from engine.models.families.fields import MOST_EXPERTS, MOST_LAYERS, Fields
from engine.models.families.rope_fields import read_rotary, yarn_magnitude


def _deepseek(fields: Fields, experts: Experts, interleaved: bool) -> dict[str, Any]:
    latent = Latent(
        query_rank=fields.count("q_lora_rank", 0, low=0),
        rank=fields.count("kv_lora_rank", 512),
        nope=fields.count("qk_nope_head_dim", 128),
        rope=fields.count("qk_rope_head_dim", 64),
        value=fields.count("v_head_dim", 128),
    )
    layers = fields.count("num_hidden_layers", high=MOST_LAYERS)
    first = fields.count("first_k_dense_replace", 0, low=0)
    bias = fields.flag("attention_bias")
    own = common_fields(fields, head_dim=latent.rope, qkv_bias=bias, out_bias=bias)
    rotary = read_rotary(fields, latent.rope, interleaved)
    return own | {
        "rotary": rotary,
        "latent": latent,
        "kv_heads": own["heads"],
        "experts": experts,
        "expert_layers": tuple(layer >= first for layer in range(layers)),
        "attention_scale": (latent.nope + latent.rope) ** -0.5 * _yarn_scale(fields, rotary),
    }


def _yarn_scale(fields: Fields, rotary: Rotary) -> float:
    """DeepSeek sharpens attention by the square of yarn's magnitude at `mscale_all_dim`."""
    scaling = fields.inner("rope_parameters") or fields.inner("rope_scaling")
    if rotary.kind == "default" or scaling is None:
        return 1.0
    all_dim = scaling.number("mscale_all_dim", 0.0)
    return yarn_magnitude(rotary.factor, all_dim) ** 2 if all_dim else 1.0


def deepseek_v2(fields: Fields, common: dict[str, Any]) -> ModelConfig:
    """V2: softmax routing, greedy or within the best groups by their best expert."""
    methods = {"greedy": "greedy", "group_limited_greedy": "group"}
    grouped = fields.choice("topk_method", "greedy", methods) == "group"
    width = fields.count("moe_intermediate_size", 1407)
    # `norm_topk_prob` is read by no published V2 implementation together with scaling: ignored.
    experts = Experts(
        count=fields.count("n_routed_experts", 64, high=MOST_EXPERTS),
        per_token=fields.count("num_experts_per_tok"),
        width=width,
        shared=width * fields.count("n_shared_experts", 2),
        normalize=False,
        scaling=fields.number("routed_scaling_factor", 1.0),
        groups=fields.count("n_group") if grouped else 1,
        top_groups=fields.count("topk_group") if grouped else 1,
    )
    own = _deepseek(fields, experts, interleaved=True)
    return ModelConfig(**common, **own | {"mlp_bias": fields.flag("mlp_bias")})


def deepseek_v32(fields: Fields, common: dict[str, Any]) -> ModelConfig:
    """V3.2 (arXiv 2512.02556): V3 whose attention an index of tokens thins out."""
    return _indexed(fields, common, {"index_n_heads": 64}, interleaved=False)


def glm_moe_dsa(fields: Fields, common: dict[str, Any]) -> ModelConfig:
    """GLM-5: DeepSeek-V3.2's attention and router, its index rotated in pairs."""
    own = {"n_group": 1, "topk_group": 1, "rms_norm_eps": 1e-5, "index_n_heads": 32}
    every = fields.raw.get("indexer_types") or []
    full = isinstance(every, list) and all(kind == "full" for kind in every)
    if fields.count("index_topk_freq", 1, low=0) > 1 or not full:
        raise fields.bad("indexer_types", "shares choices between layers; only full is supported")
    return _indexed(fields, common, own, interleaved=True)


def _indexed(
    fields: Fields, common: dict[str, Any], own: dict[str, Any], interleaved: bool
) -> ModelConfig:
    fields = Fields(
        own | {"q_lora_rank": 1536, "first_k_dense_replace": 3} | fields.raw, fields.where
    )
    index = Index(
        heads=fields.count("index_n_heads"),
        size=fields.count("index_head_dim", 128),
        kept=fields.count("index_topk", 2048),
        interleaved=interleaved,
    )
    if not fields.has("q_lora_rank") or index.size < fields.count("qk_rope_head_dim", 64):
        raise fields.bad(
            "index_head_dim", "needs compressed queries, and no fewer than they rotate"
        )
    return replace(deepseek_v3(fields, common), index=index)


def deepseek_v3(fields: Fields, common: dict[str, Any]) -> ModelConfig:
    """V3: sigmoid routing with a correction bias, groups by their two best experts."""
    width = fields.count("moe_intermediate_size", 2048)
    experts = Experts(
        count=fields.count("n_routed_experts", 256, high=MOST_EXPERTS),
        per_token=fields.count("num_experts_per_tok", 8),
        width=width,
        shared=width * fields.count("n_shared_experts", 1),
        score="sigmoid",
        normalize=fields.flag("norm_topk_prob", True),
        scaling=fields.number("routed_scaling_factor", 2.5),
        groups=fields.count("n_group", 8),
        top_groups=fields.count("topk_group", 4),
        group_score="top2",
        correction=True,
    )
    interleaved = fields.flag("rope_interleave", True)
    return ModelConfig(**common, **_deepseek(fields, experts, interleaved))
