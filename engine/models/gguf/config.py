"""GGUF metadata as the fields of a Hugging Face config: what the file says of its model."""

from typing import Any

import torch

from engine.core.errors import BadInput
from engine.models.config import ModelConfig, Rotary
from engine.models.families import parse
from engine.models.gguf.blocks import numbers
from engine.models.gguf.header import Header
from engine.models.rotary import frequencies

ARCHITECTURES = {
    "llama": "LlamaForCausalLM", "qwen2": "Qwen2ForCausalLM", "qwen3": "Qwen3ForCausalLM",
    "qwen3moe": "Qwen3MoeForCausalLM",
}  # fmt: skip
MIXTURES = {"llama": "MixtralForCausalLM", "qwen3moe": "Qwen3MoeForCausalLM"}
FIELDS = {
    "block_count": "num_hidden_layers",
    "embedding_length": "hidden_size",
    "feed_forward_length": "intermediate_size",
    "attention.head_count": "num_attention_heads",
    "attention.head_count_kv": "num_key_value_heads",
    "attention.layer_norm_rms_epsilon": "rms_norm_eps",
    "attention.key_length": "head_dim",
    "context_length": "max_position_embeddings",
    "rope.freq_base": "rope_theta",
}
STRETCH = "rope_freqs.weight"  # how much slower each pair of a head turns (Llama 3.1)
LLAMA3 = {"rope_type": "llama3", "low_freq_factor": 1.0, "high_freq_factor": 4.0}
LLAMA3_POSITIONS = 8192


def config_of(header: Header) -> ModelConfig:
    """The config a file's metadata describes. Raises BadInput naming what is not read."""
    return parse(_fields(header), str(header.path))


def _fields(header: Header) -> dict[str, Any]:
    path, held, tensors = header.path, header.metadata, header.tensors
    kind = held.get("general.architecture")
    if kind not in ARCHITECTURES:
        raise BadInput(
            f"{path}: general.architecture is {str(kind)[:40]!r}; GGUF files are read of "
            f"{', '.join(ARCHITECTURES)}: give the model's Hugging Face folder"
        )
    raw: dict[str, Any] = {"architectures": [ARCHITECTURES[kind]], "dtype": "float32"}
    raw |= {name: held[f"{kind}.{key}"] for key, name in FIELDS.items() if f"{kind}.{key}" in held}
    table = tensors.get("token_embd.weight")
    if table is None or len(table.shape) != 2:
        raise BadInput(f"{path}: no matrix 'token_embd.weight'; give a whole model")
    if held.get(f"{kind}.expert_count"):
        raw |= _experts(header, kind)
    raw["vocab_size"] = table.shape[0]
    raw["tie_word_embeddings"] = "output.weight" not in tensors
    if kind == "llama":
        raw["attention_bias"] = "blk.0.attn_q.bias" in tensors
    for name in ("bos_token_id", "eos_token_id"):
        if (token := held.get(f"tokenizer.ggml.{name}")) is not None:
            raw[name] = token
    scaling = _scaling(header, kind, raw)
    return raw | ({} if scaling is None else {"rope_scaling": scaling})


def _experts(header: Header, kind: str) -> dict[str, Any]:
    """What the file says of its experts, all layers alike."""
    held = header.metadata
    if kind not in MIXTURES:
        raise BadInput(
            f"{header.path}: a mixture of experts of {kind}; GGUF files are read of those of "
            f"{', '.join(MIXTURES)}: give the model's Hugging Face folder"
        )
    count = "num_local_experts" if kind == "llama" else "num_experts"
    found = {
        "architectures": [MIXTURES[kind]],
        count: held[f"{kind}.expert_count"],
        "num_experts_per_tok": held.get(f"{kind}.expert_used_count"),
    }
    if kind == "llama":
        return found
    width = held.get(f"{kind}.expert_feed_forward_length")
    return found | {"moe_intermediate_size": width, "norm_topk_prob": True}


def _scaling(header: Header, kind: str, raw: dict[str, Any]) -> dict[str, Any] | None:
    held, path = header.metadata, header.path
    named = held.get(f"{kind}.rope.scaling.type", "none")
    if named == "linear":
        return {"rope_type": "linear", "factor": held.get(f"{kind}.rope.scaling.factor")}
    if named != "none":
        raise BadInput(f"{path}: {kind}.rope.scaling.type is {str(named)[:40]!r}; linear is read")
    if STRETCH not in header.tensors:
        return None
    slower = numbers(header.tensors[STRETCH]).float().flatten()
    found = LLAMA3 | {
        "factor": float(slower.max()) if slower.numel() else 0.0,
        "original_max_position_embeddings": LLAMA3_POSITIONS,
    }
    theta = raw.get("rope_theta", 10_000.0)
    if slower.numel() and float(slower.min()) >= 1.0 and isinstance(theta, float) and theta >= 1:
        rotary = {"dim": 2 * slower.numel(), "theta": theta}
        plain = frequencies(Rotary(**rotary))  # type: ignore[arg-type]
        ours = Rotary(
            **rotary, kind="llama3", factor=found["factor"],  # type: ignore[arg-type]
            original_positions=LLAMA3_POSITIONS,
        )  # fmt: skip
        if torch.allclose(plain / slower, frequencies(ours), rtol=1e-4):
            return found
    raise BadInput(f"{path}: {STRETCH!r} are not Llama 3.1's; give the model's Hugging Face folder")
