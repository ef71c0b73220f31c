"""The knobs of derived tensor-parallel plans: a family, ranks, the rules, what is trained."""

from typing import Any, Literal

from engine.core.config import Config, knob
from engine.core.errors import BadInput
from engine.models.config import ModelConfig
from engine.models.families import FAMILIES, parse
from engine.training.loop.family import Family
from engine.training.shard_rules.rules import Rules

PUBLIC: dict[str, str] = {
    "llama": "llama-3.1-70b",
    "mistral": "mistral-7b",
    "qwen2": "qwen2.5-7b",
    "qwen3": "qwen3-32b",
    "gemma2": "gemma-2-27b",
    "gpt2": "gpt2-medium",
    "mixtral": "mixtral-8x7b",
    "qwen3_moe": "qwen3-30b-a3b",
    "deepseek_v2": "deepseek-v2-lite",
    "deepseek_v3": "deepseek-v3",
}
LATENT: dict[str, Any] = {
    "q_lora_rank": 24, "kv_lora_rank": 16, "qk_nope_head_dim": 8, "qk_rope_head_dim": 4,
    "v_head_dim": 8, "n_routed_experts": 8, "n_shared_experts": 1, "num_experts_per_tok": 2,
    "moe_intermediate_size": 16, "first_k_dense_replace": 1, "num_key_value_heads": 8,
}  # fmt: skip
OWN: dict[str, dict[str, Any]] = {
    "gpt2": {"n_embd": 64, "n_head": 8, "n_layer": 2, "n_positions": 256},
    "mixtral": {"num_local_experts": 4},
    "qwen3_moe": {"num_experts": 8, "num_experts_per_tok": 2, "moe_intermediate_size": 32,
                  "head_dim": 8},
    "qwen3": {"head_dim": 8},
    "gemma2": {"head_dim": 8, "query_pre_attn_scalar": 8},
    "deepseek_v2": LATENT | {"q_lora_rank": None},
    "deepseek_v3": LATENT | {"n_group": 4, "topk_group": 2},
}  # fmt: skip


class ShardRulesConfig(Config):
    """A small model of a family with random weights, split among ranks of this process."""

    family: Family = knob("llama", "model family, as config.json calls it")
    ranks: int = knob(2, "tensor-parallel ranks", low=1, high=8)
    rules: Rules = knob(make=Rules, doc="the two rules")
    pipeline: Literal["language_modelling", "preferences"] = knob(
        "language_modelling", "which three functions are trained"
    )
    steps: int = knob(5, "steps of gradient descent", low=1, high=200)
    rate: float = knob(0.5, "its rate", low=1e-4, high=10.0, log=True, group="more")
    rows: int = knob(4, "examples", low=1, high=64, group="more")
    tokens: int = knob(24, "of each sequence", low=4, high=512, unit="tokens", group="more")
    seed: int = knob(0, "of weights and examples", low=0, high=2**31 - 1, group="more")

    def model(self) -> ModelConfig:
        """Eight query heads, four key/value heads (eight with latents), two layers."""
        return small(self.family)


def small(family: str) -> ModelConfig:
    """The small model of a family."""
    names = {kind: name for name, (kind, _) in FAMILIES.items()}
    if family not in names:
        raise BadInput(f"family {family!r}: there are {', '.join(names)}")
    shape = {
        "architectures": [names[family]], "vocab_size": 96, "hidden_size": 64,
        "num_hidden_layers": 2, "num_attention_heads": 8, "num_key_value_heads": 4,
        "intermediate_size": 96, "max_position_embeddings": 1024,
    }  # fmt: skip
    return parse(shape | OWN.get(family, {}), f"small {family}")
