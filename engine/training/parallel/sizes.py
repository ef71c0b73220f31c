"""Sizes of a tiny transformer of any family the engine loads, for training on a mesh."""

from typing import Any

from engine.core.config import Config, knob
from engine.models.config import ModelConfig
from engine.models.families import FAMILIES, parse
from engine.training.loop.family import Family


class Sizes(Config):
    """A tiny transformer."""

    family: Family = knob("llama", "as config.json calls it: what norms, attention, experts it has")
    hidden: int = knob(32, "residual width", low=8, high=4096)
    width: int = knob(64, "width of the feed-forward, and of an expert", low=8, high=16384)
    layers: int = knob(2, "transformer layers", low=1, high=64)
    heads: int = knob(8, "query heads", low=1, high=64)
    kv_heads: int = knob(4, "key/value heads", low=1, high=64)
    experts: int = knob(4, "experts of a layer, where the family has them", low=2, high=256)
    vocabulary: int = knob(48, "entries of the vocabulary", low=8, high=65536)
    tied: bool = knob(False, "the head is the embedding")

    def model(self) -> ModelConfig:
        names = {kind: name for name, (kind, _) in FAMILIES.items()}
        head = max(2, self.hidden // self.heads // 2 * 2)
        common = {
            "architectures": [names[self.family]],
            "model_type": self.family,
            "vocab_size": self.vocabulary,
            "hidden_size": self.hidden,
            "intermediate_size": self.width,
            "num_hidden_layers": self.layers,
            "num_attention_heads": self.heads,
            "num_key_value_heads": self.kv_heads,
            "head_dim": head,
            "hidden_act": "silu",
            "max_position_embeddings": 4096,
            "rms_norm_eps": 1e-5,
            "rope_theta": 10_000.0,
            "tie_word_embeddings": self.tied,
        }
        return parse(common | self._own(head))

    def _own(self, head: int) -> dict[str, Any]:
        """What the family spells by itself."""
        routed = {"num_experts_per_tok": 2, "moe_intermediate_size": self.width}
        latent = routed | {
            "kv_lora_rank": 2 * head, "qk_nope_head_dim": head, "qk_rope_head_dim": 2,
            "v_head_dim": head, "n_routed_experts": self.experts, "n_shared_experts": 1,
            "num_key_value_heads": self.heads, "first_k_dense_replace": 1,
        }  # fmt: skip
        own: dict[str, dict[str, Any]] = {
            "mistral": {"sliding_window": None},
            "gemma2": {"query_pre_attn_scalar": head, "sliding_window": 8},
            "gpt2": {"n_embd": self.hidden, "n_head": self.heads, "n_layer": self.layers,
                     "n_inner": self.width, "n_positions": 4096},
            "mixtral": {"num_local_experts": self.experts, "num_experts_per_tok": 2},
            "qwen3_moe": routed | {"num_experts": self.experts},
            "deepseek_v2": latent | {"q_lora_rank": None},
            "deepseek_v3": latent | {"q_lora_rank": 3 * head, "n_group": 2, "topk_group": 1},
        }  # fmt: skip
        return own.get(self.family, {})
