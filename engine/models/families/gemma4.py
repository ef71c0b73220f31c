"""Gemma-4's text model: layers with a window beside wider heads without one, keys and values that
the last layers share, inputs of each layer, and experts beside its feed-forward."""

import math
from typing import Any

from engine.models.config import Experts, LayerInputs, ModelConfig, Rotary
from engine.models.families.common import ACTIVATIONS, common_fields, windows_every
from engine.models.families.dense import softcap
from engine.models.families.fields import MOST_EXPERTS, MOST_LAYERS, Fields
from engine.models.families.rope_fields import read_rotary

FULL, SLIDING = "full_attention", "sliding_attention"
ROPE: dict[str, dict[str, Any]] = {
    FULL: {"rope_type": "proportional", "partial_rotary_factor": 0.25, "rope_theta": 1e6},
    SLIDING: {"rope_type": "default", "rope_theta": 1e4},
}


def gemma4(fields: Fields, common: dict[str, Any]) -> ModelConfig:
    """The text model alone; pictures and sound are another architecture."""
    if fields.raw.get("use_bidirectional_attention") not in (None, "vision"):
        raise fields.bad("use_bidirectional_attention", "is not causal; only that is supported")
    layers = fields.count("num_hidden_layers", high=MOST_LAYERS)
    window, bias = fields.count("sliding_window", 512), fields.flag("attention_bias")
    windows = (*windows_every(fields, layers, window, 6)[:-1], 0)  # the last one never has any
    head_dim, width = fields.count("head_dim", 256), fields.count("intermediate_size")
    heads, sources = _wide_heads(fields, windows, head_dim), _sources(fields, windows)
    main, local = _rotary(fields, FULL, heads[1]), _rotary(fields, SLIDING, head_dim)
    size = fields.count("hidden_size_per_layer_input", 256, low=0)
    vocab = _vocab(fields) if size else 0
    wider = 2 if fields.flag("use_double_wide_mlp") else 1
    own: dict[str, Any] = {
        "head_dim": head_dim,
        "activation": fields.choice("hidden_activation", "gelu_pytorch_tanh", ACTIVATIONS),
        "attention_scale": 1.0,
        "rotary": main,
        "local_rotary": None if local == main else local,
        "windows": windows,
        "wide_heads": heads,
        "key_is_value": fields.flag("attention_k_eq_v"),
        "value_norm": True,
        "sources": sources,
        "widths": tuple(
            width * (wider if source != layer else 1) for layer, source in enumerate(sources)
        ),
        "layer_inputs": LayerInputs(vocab, size) if size else None,
        "layer_scale": True,
        "logit_softcap": softcap(fields, "final_logit_softcapping", 0.0),
        "tied": fields.flag("tie_word_embeddings", True),
        "embedding_scale": math.sqrt(fields.count("hidden_size")),
        "sandwich": True,
        "qk_norm": True,
        "qkv_bias": bias,
        "out_bias": bias,
    }
    if fields.flag("enable_moe_block"):
        own |= {"experts": _experts(fields), "expert_layers": (True,) * layers}
    return ModelConfig(**common, **common_fields(fields, **own))


def _experts(fields: Fields) -> Experts:
    """Of every layer, beside its feed-forward."""
    return Experts(
        count=fields.count("num_experts", high=MOST_EXPERTS),
        per_token=fields.count("top_k_experts"),
        width=fields.count("moe_intermediate_size"),
        names="beside",
    )


def _vocab(fields: Fields) -> int:
    """Tokens that have an embedding for each layer: at least those of the model."""
    vocab, least = fields.count("vocab_size_per_layer_input", 262_144), fields.count("vocab_size")
    if vocab < least:
        raise fields.bad(
            "vocab_size_per_layer_input", f"is {vocab}; every token of vocab_size, {least}, has one"
        )
    return vocab


def _wide_heads(fields: Fields, windows: tuple[int, ...], head_dim: int) -> tuple[int, int]:
    """Key/value heads and head size of layers without a window, in either spelling."""
    all_heads = fields.count("num_attention_heads")
    kv_heads = fields.count("num_key_value_heads", all_heads)
    told = fields.raw.get("per_layer_config")
    if told is None:
        if fields.flag("attention_k_eq_v"):
            kv_heads = fields.count("num_global_key_value_heads", kv_heads)
        found = kv_heads, fields.count("global_head_dim", 512)
    else:
        wide = {layer for layer, window in enumerate(windows) if not window}
        each: dict[str, Any] = told if isinstance(told, dict) else {"": None}
        first: dict[str, Any] = next(iter(each.values()), {})
        said = {int(key) for key in each if str(key).isdecimal() and len(str(key)) < 9}
        same = all(value == first for value in each.values()) and isinstance(first, dict)
        if not same or len(said) != len(each) or said not in (set(), wide):
            raise fields.bad(
                "per_layer_config", "must say the same of all full_attention layers, and no others"
            )
        inner = Fields(first, f"{fields.where}: per_layer_config")
        found = inner.count("num_key_value_heads", kv_heads), inner.count("head_dim", head_dim)
    if all_heads % found[0] or found[1] % 2:
        raise fields.bad(
            "per_layer_config",
            f"gives {found[0]} key/value heads of {found[1]}; they must divide {all_heads} heads "
            "and have an even size",
        )
    return found


def _sources(fields: Fields, windows: tuple[int, ...]) -> tuple[int, ...]:
    """The last layers read what the last one of their kind before them has written."""
    layers = len(windows)
    first = layers - fields.count("num_kv_shared_layers", 0, low=0, high=layers - 1)
    last = {bool(window): layer for layer, window in enumerate(windows[:first])}
    if any(bool(window) not in last for window in windows):
        raise fields.bad("num_kv_shared_layers", "leaves no layer of a kind that they could share")
    return tuple(
        layer if layer < first else last[bool(window)] for layer, window in enumerate(windows)
    )


def _rotary(fields: Fields, kind: str, dim: int) -> Rotary:
    both = fields.inner("rope_parameters")
    told = (both.inner(kind) if both else None) or Fields(ROPE[kind], fields.where)
    if told.text("rope_type", "default") != "proportional":
        return read_rotary(Fields(fields.raw | {"rope_parameters": told.raw}, fields.where), dim)
    part = told.number("partial_rotary_factor", 1.0)
    if not 0.0 < part <= 1.0:
        raise told.bad("partial_rotary_factor", f"is {part:g}; it must lie above 0, up to 1")
    theta, factor = told.number("rope_theta", 1e6, low=1e-3), told.number("factor", 1.0, low=1e-6)
    return Rotary(dim, theta, kind="proportional", factor=factor, part=part)
