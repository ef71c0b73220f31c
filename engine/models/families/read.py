"""From a Hugging Face `config.json` to a ModelConfig, by the architecture it names."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from engine.core.limits import check
from engine.models.config import ModelConfig
from engine.models.families.deepseek import (
    deepseek_v2,
    deepseek_v3,
    deepseek_v32,
    glm_moe_dsa,
)
from engine.models.families.dense import gemma2, gpt2, llama, mistral, qwen2, qwen3
from engine.models.families.fields import Fields, read_json
from engine.models.families.gemma3 import gemma3
from engine.models.families.gemma4 import gemma4
from engine.models.families.gpt_oss import gpt_oss
from engine.models.families.llada import llada
from engine.models.families.mixtures import glm4_moe, minimax_m2, mixtral, qwen3_moe
from engine.models.families.nemotron_h import nemotron_h
from engine.models.families.positions import exaone4, granite, olmo2, olmo3, phi3, smollm3
from engine.models.families.quantised import FIELD, method_of
from engine.models.families.qwen_next import qwen3_5, qwen3_5_moe, qwen3_next

FAMILIES: dict[str, tuple[str, Callable[[Fields, dict[str, Any]], ModelConfig]]] = {
    "LlamaForCausalLM": ("llama", llama),
    "MistralForCausalLM": ("mistral", mistral),
    "Qwen2ForCausalLM": ("qwen2", qwen2),
    "Qwen2ParScaleForCausalLM": ("qwen2_parscale", qwen2),
    "Qwen3ForCausalLM": ("qwen3", qwen3),
    "MixtralForCausalLM": ("mixtral", mixtral),
    "Qwen3MoeForCausalLM": ("qwen3_moe", qwen3_moe),
    "GPT2LMHeadModel": ("gpt2", gpt2),
    "Gemma2ForCausalLM": ("gemma2", gemma2),
    "Gemma3ForCausalLM": ("gemma3_text", gemma3),
    "Gemma4ForCausalLM": ("gemma4_text", gemma4),
    "Olmo2ForCausalLM": ("olmo2", olmo2),
    "Olmo3ForCausalLM": ("olmo3", olmo3),
    "Exaone4ForCausalLM": ("exaone4", exaone4),
    "Phi3ForCausalLM": ("phi3", phi3),
    "GraniteForCausalLM": ("granite", granite),
    "SmolLM3ForCausalLM": ("smollm3", smollm3),
    "Glm4MoeForCausalLM": ("glm4_moe", glm4_moe),
    "MiniMaxM2ForCausalLM": ("minimax_m2", minimax_m2),
    "GptOssForCausalLM": ("gpt_oss", gpt_oss),
    "Qwen3NextForCausalLM": ("qwen3_next", qwen3_next),
    "Qwen3_5ForCausalLM": ("qwen3_5_text", qwen3_5),
    "Qwen3_5MoeForCausalLM": ("qwen3_5_moe_text", qwen3_5_moe),
    "LLaDAModelLM": ("llada", llada),
    "NemotronHForCausalLM": ("nemotron_h", nemotron_h),
    "DeepseekV2ForCausalLM": ("deepseek_v2", deepseek_v2),
    "DeepseekV3ForCausalLM": ("deepseek_v3", deepseek_v3),
    "DeepseekV32ForCausalLM": ("deepseek_v32", deepseek_v32),
    "GlmMoeDsaForCausalLM": ("glm_moe_dsa", glm_moe_dsa),
}
ENDING = "ForCausalLM"  # of almost every name, left out where all are listed


def read_config(path: Path) -> ModelConfig:
    """The config of a model folder (or of a `config.json` itself)."""
    path = path / "config.json" if path.is_dir() else path
    return parse(read_json(path), str(path))


def parse(raw: dict[str, Any], where: str = "config.json") -> ModelConfig:
    """A ModelConfig from the fields of a Hugging Face config. Raises BadInput naming the field."""
    fields = Fields(raw, where)
    if fields.has(FIELD):
        method_of(raw[FIELD], where)
    named, kind = raw.get("architectures"), str(raw.get("model_type"))
    by_kind = {family: name for name, (family, _) in FAMILIES.items()}
    name = named[0] if isinstance(named, list) and named else by_kind.get(kind)
    if not isinstance(name, str) or name not in FAMILIES:
        told = name if isinstance(name, str) else raw.get("model_type")
        known = ", ".join(each.removesuffix(ENDING) for each in FAMILIES)
        raise fields.bad(
            "architectures", f"names {str(told)[:80]!r}; supported are (… {ENDING}) {known}"
        )
    family, build = FAMILIES[name]
    kept = {key: value for key, value in raw.items() if key not in ("auto_map", FIELD)}
    kept |= {"architectures": [name], "model_type": family}
    common = {"architecture": name, "family": family, "raw": kept}
    return _checked(build(fields, common), fields)


def _checked(config: ModelConfig, fields: Fields) -> ModelConfig:
    """Refuse what cannot work together, and more tensors than a checkpoint may hold."""
    each = 3 * config.experts.count if config.experts else 3
    check(fields.where, "tensors", config.layers * each, "tensors")
    for name in ("bos", "eos", "mask"):
        if any(token >= config.vocab for token in getattr(config, name)):
            raise fields.bad(f"{name}_token_id", f"names a token beyond the {config.vocab} known")
    if config.heads % config.kv_heads:
        raise fields.bad(
            "num_key_value_heads", f"is {config.kv_heads}; it must divide {config.heads} heads"
        )
    for turn in filter(None, (config.rotary, config.local_rotary)):
        if turn.dim % 2:
            raise fields.bad("head_dim", f"is {turn.dim}; rotary heads must have an even size")
    if config.streams and any(config.windows):
        raise fields.bad("parscale_n", f"is {config.streams.count}; streams take no window")
    moe = config.experts
    if moe and moe.per_token > moe.count:
        raise fields.bad("num_experts_per_tok", f"is {moe.per_token} of {moe.count} experts")
    if moe and moe.top_groups > moe.groups:
        raise fields.bad("topk_group", f"is {moe.top_groups} of {moe.groups} groups")
    if moe and moe.count % moe.groups:
        raise fields.bad("n_group", f"is {moe.groups}; it must divide {moe.count} experts")
    if moe and moe.group_score == "top2" and moe.count // moe.groups < 2:
        raise fields.bad("n_group", f"is {moe.groups}; each group needs two experts or more")
    if moe and moe.per_token > moe.count // moe.groups * moe.top_groups:
        raise fields.bad("topk_group", f"is {moe.top_groups}; too few experts left to choose from")
    return config
