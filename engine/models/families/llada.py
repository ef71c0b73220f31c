"""LLaDA (arXiv 2502.09992): a Llama whose tokens all see one another, which fills in masks."""

from typing import Any

from engine.models.config import ModelConfig
from engine.models.families.common import ACTIVATIONS
from engine.models.families.fields import LEAST, MOST_LAYERS, Fields
from engine.models.families.rope_fields import read_rotary

OFF = (  # what OLMo's code, which it began as, can do besides
    "alibi", "attention_layer_norm", "include_bias", "input_emb_norm", "scale_logits",
    "multi_query_attention",
)  # fmt: skip


def llada(fields: Fields, common: dict[str, Any]) -> ModelConfig:
    """LLaDA, base and instruct."""
    for name in OFF:
        if fields.flag(name):
            raise fields.bad(name, "is true; LLaDA has it off")
    for name, only in (("block_type", "llama"), ("layer_norm_type", "rms")):
        if fields.text(name, only) != only:
            raise fields.bad(name, f"must be {only!r}")
    if fields.count("block_group_size", 1) != 1 or not fields.flag("rope", True):
        raise fields.bad("rope", "must be true, and block_group_size 1")
    hidden, heads = fields.count("d_model"), fields.count("n_heads")
    layers, vocab = fields.count("n_layers", high=MOST_LAYERS), fields.count("vocab_size")
    if hidden % heads:
        raise fields.bad("n_heads", f"is {heads}; it must divide d_model = {hidden}")
    head_dim = hidden // heads
    return ModelConfig(
        **common,
        vocab=fields.count("embedding_size", vocab),
        hidden=hidden,
        layers=layers,
        heads=heads,
        kv_heads=fields.count("n_kv_heads", heads),
        head_dim=head_dim,
        width=fields.count("mlp_hidden_size", fields.count("mlp_ratio", 4) * hidden),
        max_positions=fields.count("max_sequence_length", 1024),
        norm_eps=fields.number("rms_norm_eps", 1e-5, low=LEAST),
        attention_scale=head_dim**-0.5,
        windows=(0,) * layers,
        expert_layers=(False,) * layers,
        rotary=read_rotary(fields, head_dim),
        tied=fields.flag("weight_tying", True),
        activation=fields.choice("activation_type", "silu", ACTIVATIONS),
        qkv_bias=fields.flag("include_qkv_bias"),
        eos=fields.tokens("eos_token_id"),
        mask=fields.tokens("mask_token_id"),
    )
