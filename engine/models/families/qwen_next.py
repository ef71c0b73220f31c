"""Qwen3-Next and Qwen3.5: three layers of the gated delta rule to one of gated attention."""

from typing import Any

from engine.models.config import Delta, Experts, ModelConfig
from engine.models.families.common import common_fields
from engine.models.families.fields import MOST_EXPERTS, MOST_LAYERS, Fields
from engine.models.families.mixtures import routed_layers
from engine.models.families.rope_fields import read_rotary

KINDS = {"linear_attention": True, "full_attention": False}


def qwen3_next(fields: Fields, common: dict[str, Any]) -> ModelConfig:
    """Qwen3-Next: experts in every layer, one of them always on behind a gate of its own."""
    own = _parts(fields, by_head=True)
    return ModelConfig(**common, **common_fields(fields, **own, **_experts(fields)))


def qwen3_5(fields: Fields, common: dict[str, Any]) -> ModelConfig:
    """Qwen3.5's dense text model."""
    return ModelConfig(**common, **common_fields(fields, **_parts(fields, by_head=False)))


def qwen3_5_moe(fields: Fields, common: dict[str, Any]) -> ModelConfig:
    """Qwen3.5's text model with Qwen3-Next's experts."""
    fields = Fields({"intermediate_size": 5632} | fields.raw, fields.where)
    own = _parts(fields, by_head=False)
    return ModelConfig(**common, **common_fields(fields, **own, **_experts(fields)))


def _parts(fields: Fields, by_head: bool) -> dict[str, Any]:
    layers, bias = (
        fields.count("num_hidden_layers", high=MOST_LAYERS),
        fields.flag("attention_bias"),
    )
    head_dim = fields.count("head_dim", 256)
    delta = Delta(
        key_heads=fields.count("linear_num_key_heads", 16),
        value_heads=fields.count("linear_num_value_heads", 32),
        key=fields.count("linear_key_head_dim", 128),
        value=fields.count("linear_value_head_dim", 128),
        kernel=fields.count("linear_conv_kernel_dim", 4, low=2),
        by_head=by_head,
    )
    if delta.value_heads % delta.key_heads:
        raise fields.bad(
            "linear_num_key_heads",
            f"is {delta.key_heads}; it must divide {delta.value_heads} value heads",
        )
    return {
        "head_dim": head_dim,
        "recurrence": delta,
        "recurrent": _recurrent(fields, layers),
        "query_gate": True,
        "qk_norm": True,
        "norm_offset": 1.0,
        "qkv_bias": bias,
        "out_bias": bias,
        "rotary": read_rotary(fields, head_dim, part=0.25),
    }


def _recurrent(fields: Fields, layers: int) -> tuple[bool, ...]:
    """Which layers keep a state: as `layer_types` says, or all but each fourth."""
    kinds = fields.raw.get("layer_types")
    if kinds is None:
        every = fields.count("full_attention_interval", 4)
        return tuple((layer + 1) % every != 0 for layer in range(layers))
    known = isinstance(kinds, list) and all(isinstance(k, str) and k in KINDS for k in kinds)
    if not known or len(kinds) != layers:
        raise fields.bad("layer_types", f"must list {' or '.join(KINDS)} for {layers} layers")
    return tuple(KINDS[kind] for kind in kinds)


def _experts(fields: Fields) -> dict[str, Any]:
    layers = fields.count("num_hidden_layers", high=MOST_LAYERS)
    experts = Experts(
        count=fields.count("num_experts", 512, high=MOST_EXPERTS),
        per_token=fields.count("num_experts_per_tok", 10),
        width=fields.count("moe_intermediate_size", 512),
        shared=fields.count("shared_expert_intermediate_size", 512),
        normalize=fields.flag("norm_topk_prob", True),
        shared_gate=True,
    )
    return {"experts": experts, "expert_layers": routed_layers(fields, layers)}
