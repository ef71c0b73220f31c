"""Gemma-3's text model (arXiv 2503.19786): five layers with a window to one without, each kind with
its own rotation, norms on both sides and on query and key heads, no caps."""

import math
from typing import Any

from engine.models.config import ModelConfig
from engine.models.families.common import ACTIVATIONS, common_fields, local_rotary, windows_every
from engine.models.families.dense import softcap
from engine.models.families.fields import MOST_LAYERS, Fields
from engine.models.families.rope_fields import read_rotary


def gemma3(fields: Fields, common: dict[str, Any]) -> ModelConfig:
    """The text model alone; pictures are another architecture."""
    if fields.flag("use_bidirectional_attention"):
        raise fields.bad("use_bidirectional_attention", "is true; only causal models are supported")
    layers = fields.count("num_hidden_layers", high=MOST_LAYERS)
    bias = fields.flag("attention_bias")
    head_dim = fields.count("head_dim", 256)
    main = read_rotary(fields, head_dim, theta=1_000_000.0, layers="full_attention")
    window = fields.count("sliding_window", 4096)
    every = fields.count("sliding_window_pattern", fields.count("_sliding_window_pattern", 6))
    own: dict[str, Any] = {
        "head_dim": head_dim,
        "activation": fields.choice("hidden_activation", "gelu_pytorch_tanh", ACTIVATIONS),
        "attention_scale": fields.number("query_pre_attn_scalar", 256, low=1e-6) ** -0.5,
        "rotary": main,
        "local_rotary": local_rotary(
            fields, head_dim, main, fields.number("rope_local_base_freq", 10_000.0, low=1e-3)
        ),
        "windows": windows_every(fields, layers, window, every),
        "attention_softcap": softcap(fields, "attn_logit_softcapping", 0.0),
        "logit_softcap": softcap(fields, "final_logit_softcapping", 0.0),
        "tied": fields.flag("tie_word_embeddings", True),
        "embedding_scale": math.sqrt(fields.count("hidden_size")),
        "norm_offset": 1.0,
        "sandwich": True,
        "qk_norm": True,
        "qkv_bias": bias,
        "out_bias": bias,
    }
    return ModelConfig(**common, **common_fields(fields, **own))
