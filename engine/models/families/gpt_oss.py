"""gpt-oss (OpenAI, arXiv 2508.10925): sinks in attention, windows, clamped and biased experts."""

from typing import Any

from engine.models.config import Experts, ModelConfig
from engine.models.families.common import common_fields, windows_every
from engine.models.families.fields import MOST_EXPERTS, MOST_LAYERS, Fields
from engine.models.families.rope_fields import read_rotary

YARN = {
    "rope_type": "yarn", "factor": 32.0, "beta_fast": 32.0, "beta_slow": 1.0, "truncate": False,
    "original_max_position_embeddings": 4096,
}  # fmt: skip


def gpt_oss(fields: Fields, common: dict[str, Any]) -> ModelConfig:
    """Windows on every other layer, a sink in every head, experts in all layers."""
    layers = fields.count("num_hidden_layers", 36, high=MOST_LAYERS)
    bias, head_dim = fields.flag("attention_bias", True), fields.count("head_dim", 64)
    if not fields.has("rope_parameters") and not fields.has("rope_scaling"):
        fields = Fields(fields.raw | {"rope_scaling": YARN}, fields.where)
    experts = Experts(
        count=fields.count("num_local_experts", 128, high=MOST_EXPERTS),
        per_token=fields.count("num_experts_per_tok", 4),
        width=fields.count("intermediate_size", 2880),
        bias=True,
        names="stacked",
    )
    window = fields.count("sliding_window", 128, low=0)
    own: dict[str, Any] = {
        "head_dim": head_dim,
        "experts": experts,
        "expert_layers": (True,) * layers,
        "windows": windows_every(fields, layers, window, 2),
        "rotary": read_rotary(fields, head_dim, theta=150_000.0),
        "qkv_bias": bias,
        "out_bias": bias,
        "sinks": True,
        "glu_limit": fields.number("swiglu_limit", 7.0, low=1e-6),
        "glu_gain": fields.number("swiglu_alpha", 1.702),
    }
    return ModelConfig(**common, **common_fields(fields, **own))
