"""Families with one feed-forward in each layer: Llama, Mistral, Qwen2, Qwen3, Gemma-2, GPT-2."""

import math
from typing import Any

from engine.models.config import ModelConfig
from engine.models.families.common import (
    ACTIVATIONS,
    common_fields,
    duo_of,
    streams_of,
    window_size,
    windows_by_type,
)
from engine.models.families.fields import LEAST, MOST_LAYERS, Fields


def llama(fields: Fields, common: dict[str, Any]) -> ModelConfig:
    """Llama 2 and 3 and whatever calls itself so."""
    bias = fields.flag("attention_bias")
    own: dict[str, Any] = {"qkv_bias": bias, "out_bias": bias}
    # No fields of Llama's own: whoever does not know them reads a plain Llama without paths, or
    # with the big one of two feed-forwards.
    own["duo"] = duo_of(fields)
    paths = fields.count("thinking_paths", 0, low=0)
    own |= {"mlp_bias": fields.flag("mlp_bias"), "paths": paths, "streams": streams_of(fields)}
    return ModelConfig(**common, **common_fields(fields, **own))


def mistral(fields: Fields, common: dict[str, Any]) -> ModelConfig:
    """Mistral: one window on every layer."""
    layers = fields.count("num_hidden_layers", high=MOST_LAYERS)
    # A null says "no window"; an absent field means the family's default of 4,096.
    window = 4096 if "sliding_window" not in fields.raw else window_size(fields)
    return ModelConfig(**common, **common_fields(fields, windows=(window,) * layers))


def _qwen_windows(fields: Fields) -> tuple[int, ...]:
    layers = fields.count("num_hidden_layers", high=MOST_LAYERS)
    if not fields.flag("use_sliding_window"):
        return (0,) * layers
    window = fields.count("sliding_window", 4096)
    kinds = fields.raw.get("layer_types")
    if kinds is not None:
        return windows_by_type(fields, kinds, layers, window)
    first = fields.count("max_window_layers", 28, low=0)
    return tuple(window if layer >= first else 0 for layer in range(layers))


def qwen2(fields: Fields, common: dict[str, Any]) -> ModelConfig:
    """Qwen2 and 2.5: biased queries, keys and values."""
    own = {"qkv_bias": True, "windows": _qwen_windows(fields), "streams": streams_of(fields)}
    return ModelConfig(**common, **common_fields(fields, **own))


def qwen3(fields: Fields, common: dict[str, Any]) -> ModelConfig:
    """Qwen3: normed query and key heads."""
    bias = fields.flag("attention_bias")
    own: dict[str, Any] = {"qkv_bias": bias, "out_bias": bias, "qk_norm": True}
    own |= {"windows": _qwen_windows(fields), "head_dim": fields.count("head_dim", 128)}
    return ModelConfig(**common, **common_fields(fields, **own))


def gemma2(fields: Fields, common: dict[str, Any]) -> ModelConfig:
    """Gemma-2 (arXiv 2408.00118): caps, sandwich norms, a window on every other layer."""
    layers = fields.count("num_hidden_layers", high=MOST_LAYERS)
    bias = fields.flag("attention_bias")
    window = window_size(fields) if "sliding_window" in fields.raw else 4096
    kinds = fields.raw.get("layer_types")
    alternating = tuple(0 if layer % 2 else window for layer in range(layers))
    act = "hidden_activation" if fields.has("hidden_activation") else "hidden_act"
    own: dict[str, Any] = {
        "head_dim": fields.count("head_dim", 256),
        "activation": fields.choice(act, "gelu_pytorch_tanh", ACTIVATIONS),
        "attention_scale": fields.number("query_pre_attn_scalar", 256, low=1e-6) ** -0.5,
        "windows": windows_by_type(fields, kinds, layers, window) if kinds else alternating,
        "attention_softcap": softcap(fields, "attn_logit_softcapping", 50.0),
        "logit_softcap": softcap(fields, "final_logit_softcapping", 30.0),
        "tied": fields.flag("tie_word_embeddings", True),
        "embedding_scale": math.sqrt(fields.count("hidden_size")),
        "norm_offset": 1.0,
        "sandwich": True,
        "qkv_bias": bias,
        "out_bias": bias,
    }
    return ModelConfig(**common, **common_fields(fields, **own))


def softcap(fields: Fields, name: str, default: float) -> float:
    """A null says "no cap"; an absent field means the family's default."""
    if name in fields.raw and fields.raw[name] is None:
        return 0.0
    return fields.number(name, default)


def gpt2(fields: Fields, common: dict[str, Any]) -> ModelConfig:
    """GPT-2: learned positions, layer norms, biases everywhere, weights stored transposed."""
    hidden, heads = fields.count("n_embd", 768), fields.count("n_head", 12)
    layers = fields.count("n_layer", 12, high=MOST_LAYERS)
    if hidden % heads:
        raise fields.bad("n_head", f"is {heads}; it must divide n_embd = {hidden}")
    if fields.flag("add_cross_attention"):
        raise fields.bad("add_cross_attention", "is true; only decoders alone are supported")
    head_dim = hidden // heads
    return ModelConfig(
        **common,
        vocab=fields.count("vocab_size", 50257),
        hidden=hidden,
        layers=layers,
        heads=heads,
        kv_heads=heads,
        head_dim=head_dim,
        width=fields.count("n_inner", 4 * hidden),
        max_positions=fields.count("n_positions", 1024),
        norm="layer",
        norm_eps=fields.number("layer_norm_epsilon", 1e-5, low=LEAST),
        attention_scale=head_dim**-0.5 if fields.flag("scale_attn_weights", True) else 1.0,
        scale_by_layer=fields.flag("scale_attn_by_inverse_layer_idx"),
        windows=(0,) * layers,
        expert_layers=(False,) * layers,
        tied=fields.flag("tie_word_embeddings", True),
        activation=fields.choice("activation_function", "gelu_new", ACTIVATIONS),
        gated=False,
        qkv_bias=True,
        out_bias=True,
        mlp_bias=True,
        bos=fields.tokens("bos_token_id"),
        eos=fields.tokens("eos_token_id"),
    )
