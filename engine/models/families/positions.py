"""Families that differ from Llama in where they norm and which layers know positions.

OLMo-2 and 3, EXAONE-4, SmolLM3, Granite, Phi-3 and 4: each names the parts it is made of.
"""

from typing import Any

from engine.models.config import ModelConfig
from engine.models.families.common import (
    common_fields,
    local_rotary,
    window_size,
    windows_every,
)
from engine.models.families.fields import MOST_LAYERS, Fields
from engine.models.families.rope_fields import read_rotary

BEHIND = {"pre_norm": False, "sandwich": True}  # norms behind attention and feed-forward alone


def _layers(fields: Fields) -> int:
    return fields.count("num_hidden_layers", high=MOST_LAYERS)


def olmo2(fields: Fields, common: dict[str, Any]) -> ModelConfig:
    """OLMo-2 (arXiv 2501.00656): norms behind, queries and keys normed over all heads."""
    bias = fields.flag("attention_bias")
    own = {**BEHIND, "qk_norm": True, "qk_norm_whole": True, "qkv_bias": bias, "out_bias": bias}
    return ModelConfig(**common, **common_fields(fields, **own))


def olmo3(fields: Fields, common: dict[str, Any]) -> ModelConfig:
    """OLMo-3: OLMo-2 with a window on three layers of four; those alone are not stretched."""
    layers, bias = _layers(fields), fields.flag("attention_bias")
    head_dim = common_fields(fields, rotary=None)["head_dim"]
    main = read_rotary(fields, head_dim, layers="full_attention")
    window = window_size(fields) if "sliding_window" in fields.raw else 4096
    own: dict[str, Any] = {
        **BEHIND,
        "qk_norm": True,
        "qk_norm_whole": True,
        "qkv_bias": bias,
        "out_bias": bias,
        "rotary": main,
        "local_rotary": local_rotary(fields, head_dim, main, main.theta),
        "windows": windows_every(fields, layers, window, 4),
    }
    return ModelConfig(**common, **common_fields(fields, **own))


def exaone4(fields: Fields, common: dict[str, Any]) -> ModelConfig:
    """EXAONE-4 (arXiv 2507.11407): norms behind; layers without a window do not rotate."""
    layers, window = _layers(fields), window_size(fields)
    every = fields.raw.get("sliding_window_pattern", 4)
    if isinstance(every, str) and every == "L" * (len(every) - 1) + "G":
        every = len(every)  # "LLLG" is one of four
    if type(every) is not int or every < 0:
        raise fields.bad("sliding_window_pattern", "must be a number, or L's with a G behind them")
    windows = windows_every(fields, layers, window, every) if window else (0,) * layers
    turned = tuple(map(bool, windows)) if window else ()
    own = {**BEHIND, "qk_norm": True, "windows": windows, "turned": turned}
    return ModelConfig(**common, **common_fields(fields, **own))


def smollm3(fields: Fields, common: dict[str, Any]) -> ModelConfig:
    """SmolLM3: Llama with layers that do not rotate (NoPE, arXiv 2501.18795)."""
    layers, bias = _layers(fields), fields.flag("attention_bias")
    told, every = fields.raw.get("no_rope_layers"), fields.count("no_rope_layer_interval", 4)
    turned = tuple((layer + 1) % every != 0 for layer in range(layers))
    if told is not None:  # 1 says that a layer rotates, whatever the field is called
        if not isinstance(told, list) or len(told) != layers or any(t not in (0, 1) for t in told):
            raise fields.bad("no_rope_layers", f"must list 0 or 1 for {layers} layers")
        turned = tuple(map(bool, told))
    windows = (0,) * layers
    if fields.flag("use_sliding_window") and window_size(fields):
        kept = tuple(0 if turns else window_size(fields) for turns in turned)
        listed = fields.raw.get("layer_types") is not None
        windows = windows_every(fields, layers, window_size(fields), 0) if listed else kept
    own: dict[str, Any] = {"qkv_bias": bias, "out_bias": bias}
    own |= {"mlp_bias": fields.flag("mlp_bias")}
    own |= {"turned": turned, "windows": windows, "tied": fields.flag("tie_word_embeddings", True)}
    theta = read_rotary(fields, common_fields(fields)["head_dim"], theta=2_000_000.0)
    return ModelConfig(**common, **common_fields(fields, **own, rotary=theta))


def granite(fields: Fields, common: dict[str, Any]) -> ModelConfig:
    """Granite 3: Llama whose embeddings, residuals, scores and logits are scaled."""
    bias = fields.flag("attention_bias")
    own: dict[str, Any] = {
        "qkv_bias": bias,
        "out_bias": bias,
        "mlp_bias": fields.flag("mlp_bias"),
        "embedding_scale": fields.number("embedding_multiplier", 1.0),
        "residual_scale": fields.number("residual_multiplier", 1.0),
        "attention_scale": fields.number("attention_multiplier", 1.0),
        "logit_scale": 1.0 / fields.number("logits_scaling", 1.0, low=1e-6),
    }
    return ModelConfig(**common, **common_fields(fields, **own))


def phi3(fields: Fields, common: dict[str, Any]) -> ModelConfig:
    """Phi-3 and Phi-4: projections stored as one; Phi-4-mini rotates heads in part."""
    head_dim = common_fields(fields, rotary=None)["head_dim"]
    own: dict[str, Any] = {
        "one_projection": True,
        "rotary": read_rotary(fields, head_dim, part=1.0),
        "windows": (window_size(fields),) * _layers(fields),
    }
    return ModelConfig(**common, **common_fields(fields, **own))
