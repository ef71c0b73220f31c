"""Nemotron-H and Nemotron-3 (arXiv 2504.03624): Mamba-2, a few layers of attention without
positions, and feed-forwards or experts, each a layer of its own behind one norm."""

from typing import Any

from engine.kernels.recurrent.sizes import Mamba
from engine.models.config import Experts, ModelConfig, Rotary
from engine.models.families.common import ACTIVATIONS, common_fields
from engine.models.families.fields import MOST_EXPERTS, MOST_LAYERS, Fields

LETTERS = {"M": "linear_attention", "*": "full_attention", "-": "mlp", "E": "moe"}
OLDER = {"mamba": "linear_attention", "attention": "full_attention"}
DEFAULTS = {
    "intermediate_size": 21504, "num_key_value_heads": 8, "head_dim": 128,
    "max_position_embeddings": 4096, "layer_norm_epsilon": 1e-5,
}  # fmt: skip
ALIASES = {
    "n_groups": "mamba_n_groups", "conv_kernel": "mamba_d_conv",
    "use_conv_bias": "mamba_conv_bias",
}  # fmt: skip


def nemotron_h(fields: Fields, common: dict[str, Any]) -> ModelConfig:
    """The language model alone.

    Steps of time are not clamped: transformers clamps them from below in prompts and not where
    tokens come one by one, so that its state depends on how a prompt was cut.
    """
    kinds = _kinds(fields)
    older = {name: fields.raw[old] for name, old in ALIASES.items() if old in fields.raw}
    told = {"num_hidden_layers": len(kinds)} | DEFAULTS | fields.raw | older
    told |= {"num_hidden_layers": len(kinds), "partial_rotary_factor": 1.0}
    fields = Fields(told | {"rms_norm_eps": told["layer_norm_epsilon"]}, fields.where)
    bias = fields.flag("attention_bias")
    own: dict[str, Any] = {
        "rotary": Rotary(fields.count("head_dim")),  # of no layer
        "turned": (False,) * len(kinds),
        "halves": tuple("mixer" if kind.endswith("attention") else "feed" for kind in kinds),
        "recurrent": tuple(kind == "linear_attention" for kind in kinds),
        "recurrence": _mamba(fields),
        "gated": False,
        "activation": fields.choice("mlp_hidden_act", "relu2", ACTIVATIONS),
        "mlp_bias": fields.flag("mlp_bias"),
        "qkv_bias": bias,
        "out_bias": bias,
    }
    if "moe" in kinds:
        own |= {"experts": _experts(fields), "expert_layers": tuple(k == "moe" for k in kinds)}
    return ModelConfig(**common, **common_fields(fields, **own))


def _kinds(fields: Fields) -> list[str]:
    """What each layer is, from a list or from letters."""
    name = next((n for n in ("layers_block_type", "layer_types") if fields.has(n)), None)
    name = name or "hybrid_override_pattern"
    told = fields.raw.get(name)
    if name == "hybrid_override_pattern" and isinstance(told, str):
        told = [LETTERS.get(letter, letter) for letter in told]
    found = told if isinstance(told, list) else []
    found = [OLDER.get(kind, kind) if isinstance(kind, str) else "" for kind in found]
    if not 0 < len(found) <= MOST_LAYERS or any(k not in LETTERS.values() for k in found):
        raise fields.bad(
            name, f"must list {', '.join(LETTERS.values())}, or be letters such as M*-E"
        )
    if not {"linear_attention", "full_attention"} <= set(found):
        raise fields.bad(name, "must have a layer of linear_attention and one of full_attention")
    return found


def _mamba(fields: Fields) -> Mamba:
    if fields.text("mamba_hidden_act", "silu") not in ("silu", "swish"):
        raise fields.bad("mamba_hidden_act", "is not silu; only that is supported")
    part = Mamba(
        heads=fields.count("mamba_num_heads", 128),
        head=fields.count("mamba_head_dim", 64),
        groups=fields.count("n_groups", 8),
        state=fields.count("ssm_state_size", 128),
        kernel=fields.count("conv_kernel", 4, low=2),
        bias=fields.flag("use_bias"),
        kernel_bias=fields.flag("use_conv_bias", True),
    )
    if part.heads % part.groups:
        raise fields.bad("n_groups", f"is {part.groups}; it must divide {part.heads} Mamba heads")
    return part


def _experts(fields: Fields) -> Experts:
    """DeepSeek-V3's router over experts without a gate."""
    return Experts(
        count=fields.count("n_routed_experts", 8, high=MOST_EXPERTS),
        per_token=fields.count("num_experts_per_tok", 2),
        width=fields.count("moe_intermediate_size", 7688),
        shared=fields.count("moe_shared_expert_intermediate_size", 7688),
        score="sigmoid",
        normalize=fields.flag("norm_topk_prob", True),
        scaling=fields.number("routed_scaling_factor", 1.0),
        groups=fields.count("n_group", 1),
        top_groups=fields.count("topk_group", 1),
        group_score="top2",
        correction=True,
        latent=fields.count("moe_latent_size", 0, low=0),
        names="mixer",
    )
