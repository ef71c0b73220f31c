"""From a Hugging Face `config.json` to a ModelConfig: one small function for each family."""

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

from engine.models.config import Activation, Experts, Latent, ModelConfig, Rotary
from engine.models.fields import Fields, read_json
from engine.models.rope_fields import read_rotary, yarn_magnitude

ACTIVATIONS: dict[str, Activation] = {
    "silu": "silu",
    "swish": "silu",
    "gelu": "gelu",
    "gelu_new": "gelu_tanh",
    "gelu_pytorch_tanh": "gelu_tanh",
    "relu": "relu",
}
DTYPES = ("float32", "float16", "bfloat16", "float64")


def read_config(path: Path) -> ModelConfig:
    """The config of a model folder (or of a `config.json` itself)."""
    path = path / "config.json" if path.is_dir() else path
    return parse(read_json(path), str(path))


def parse(raw: dict[str, Any], where: str = "config.json") -> ModelConfig:
    """A ModelConfig from the fields of a Hugging Face config. Raises BadInput naming the field."""
    fields = Fields(raw, where)
    if fields.has("quantization_config"):
        raise fields.bad(
            "quantization_config",
            "asks for quantised weights, which are not supported; give a float checkpoint",
        )
    named, kind = raw.get("architectures"), str(raw.get("model_type"))
    by_kind = {family: name for name, (family, _) in FAMILIES.items()}
    name = named[0] if isinstance(named, list) and named else by_kind.get(kind)
    if not isinstance(name, str) or name not in FAMILIES:
        told = name if isinstance(name, str) else raw.get("model_type")
        raise fields.bad("architectures", f"names {told!r}; supported are {', '.join(FAMILIES)}")
    family, build = FAMILIES[name]
    kept = {key: value for key, value in raw.items() if key != "auto_map"}
    kept |= {"architectures": [name], "model_type": family}
    common = {"architecture": name, "family": family, "raw": kept}
    return _checked(build(fields, common), fields)


def _checked(config: ModelConfig, fields: Fields) -> ModelConfig:
    """Refuse what cannot work together."""
    if config.heads % config.kv_heads:
        raise fields.bad(
            "num_key_value_heads", f"is {config.kv_heads}; it must divide {config.heads} heads"
        )
    if config.rotary and config.rotary.dim % 2:
        raise fields.bad("head_dim", f"is {config.rotary.dim}; rotary heads must have an even size")
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


def _common(fields: Fields, **own: Any) -> dict[str, Any]:
    """What all families but GPT-2 spell alike."""
    layers = fields.count("num_hidden_layers")
    heads = fields.count("num_attention_heads")
    hidden = fields.count("hidden_size")
    head_dim = own.pop("head_dim", None) or fields.count("head_dim", hidden // heads or None)
    dtype = fields.text("dtype", fields.text("torch_dtype", "float32")).removeprefix("torch.")
    return {
        "vocab": fields.count("vocab_size"),
        "hidden": hidden,
        "layers": layers,
        "heads": heads,
        "kv_heads": fields.count("num_key_value_heads", heads),
        "head_dim": head_dim,
        "width": fields.count("intermediate_size"),
        "max_positions": fields.count("max_position_embeddings", 2048),
        "norm_eps": fields.number("rms_norm_eps", 1e-6),
        "attention_scale": head_dim**-0.5,
        "windows": (0,) * layers,
        "expert_layers": (False,) * layers,
        "rotary": read_rotary(fields, head_dim),
        "tied": fields.flag("tie_word_embeddings"),
        "activation": fields.choice("hidden_act", "silu", ACTIVATIONS),
        "dtype": dtype if dtype in DTYPES else "float32",
        "bos": fields.tokens("bos_token_id"),
        "eos": fields.tokens("eos_token_id"),
    } | own


def _llama(fields: Fields, common: dict[str, Any]) -> ModelConfig:
    bias = fields.flag("attention_bias")
    own = {"qkv_bias": bias, "out_bias": bias, "mlp_bias": fields.flag("mlp_bias")}
    return ModelConfig(**common, **_common(fields, **own))


def _mistral(fields: Fields, common: dict[str, Any]) -> ModelConfig:
    layers = fields.count("num_hidden_layers")
    # A null says "no window"; an absent field means the family's default of 4,096.
    window = 4096 if "sliding_window" not in fields.raw else _window(fields)
    return ModelConfig(**common, **_common(fields, windows=(window,) * layers))


def _window(fields: Fields) -> int:
    return fields.count("sliding_window", 0, low=0)


def _qwen_windows(fields: Fields) -> tuple[int, ...]:
    layers = fields.count("num_hidden_layers")
    if not fields.flag("use_sliding_window"):
        return (0,) * layers
    window = fields.count("sliding_window", 4096)
    kinds = fields.raw.get("layer_types")
    if kinds is not None:
        return _windows_by_type(fields, kinds, layers, window)
    first = fields.count("max_window_layers", 28, low=0)
    return tuple(window if layer >= first else 0 for layer in range(layers))


def _windows_by_type(fields: Fields, kinds: Any, layers: int, window: int) -> tuple[int, ...]:
    known = {"sliding_attention": window, "full_attention": 0}
    if not isinstance(kinds, list) or len(kinds) != layers or any(k not in known for k in kinds):
        raise fields.bad(
            "layer_types", f"must list sliding_attention or full_attention for {layers} layers"
        )
    return tuple(known[kind] for kind in kinds)


def _qwen2(fields: Fields, common: dict[str, Any]) -> ModelConfig:
    own = {"qkv_bias": True, "windows": _qwen_windows(fields)}
    return ModelConfig(**common, **_common(fields, **own))


def _qwen3(fields: Fields, common: dict[str, Any]) -> ModelConfig:
    bias = fields.flag("attention_bias")
    own: dict[str, Any] = {"qkv_bias": bias, "out_bias": bias, "qk_norm": True}
    own |= {"windows": _qwen_windows(fields), "head_dim": fields.count("head_dim", 128)}
    return ModelConfig(**common, **_common(fields, **own))


def _qwen3_moe(fields: Fields, common: dict[str, Any]) -> ModelConfig:
    bias = fields.flag("attention_bias")
    layers = fields.count("num_hidden_layers")
    step = fields.count("decoder_sparse_step", 1)
    dense = fields.raw.get("mlp_only_layers") or []
    if not isinstance(dense, list):
        raise fields.bad("mlp_only_layers", "must be a list of layer numbers")
    own: dict[str, Any] = {"qkv_bias": bias, "out_bias": bias, "qk_norm": True}
    window = fields.count("sliding_window", 4096) if fields.flag("use_sliding_window") else 0
    own["windows"] = (window,) * layers
    own["expert_layers"] = tuple(i not in dense and (i + 1) % step == 0 for i in range(layers))
    own["experts"] = Experts(
        count=fields.count("num_experts", fields.raw.get("num_local_experts") or 128),
        per_token=fields.count("num_experts_per_tok", 8),
        width=fields.count("moe_intermediate_size", 768),
        normalize=fields.flag("norm_topk_prob"),
    )
    return ModelConfig(**common, **_common(fields, **own))


def _mixtral(fields: Fields, common: dict[str, Any]) -> ModelConfig:
    layers = fields.count("num_hidden_layers")
    experts = Experts(
        count=fields.count("num_local_experts", 8),
        per_token=fields.count("num_experts_per_tok", 2),
        width=fields.count("intermediate_size"),
        names="block_sparse_moe",
    )
    own: dict[str, Any] = {"experts": experts, "expert_layers": (True,) * layers}
    own |= {"windows": (_window(fields),) * layers}
    rotary = read_rotary(fields, _common(fields)["head_dim"], theta=1e6)
    return ModelConfig(**common, **_common(fields, **own, rotary=rotary))


def _gemma2(fields: Fields, common: dict[str, Any]) -> ModelConfig:
    layers = fields.count("num_hidden_layers")
    bias = fields.flag("attention_bias")
    window = _window(fields) if "sliding_window" in fields.raw else 4096
    kinds = fields.raw.get("layer_types")
    alternating = tuple(0 if layer % 2 else window for layer in range(layers))
    act = "hidden_activation" if fields.has("hidden_activation") else "hidden_act"
    own: dict[str, Any] = {
        "head_dim": fields.count("head_dim", 256),
        "activation": fields.choice(act, "gelu_pytorch_tanh", ACTIVATIONS),
        "attention_scale": fields.number("query_pre_attn_scalar", 256, low=1e-6) ** -0.5,
        "windows": _windows_by_type(fields, kinds, layers, window) if kinds else alternating,
        "attention_softcap": _softcap(fields, "attn_logit_softcapping", 50.0),
        "logit_softcap": _softcap(fields, "final_logit_softcapping", 30.0),
        "tied": fields.flag("tie_word_embeddings", True),
        "embedding_scale": math.sqrt(fields.count("hidden_size")),
        "norm_offset": 1.0,
        "sandwich": True,
        "qkv_bias": bias,
        "out_bias": bias,
    }
    return ModelConfig(**common, **_common(fields, **own))


def _softcap(fields: Fields, name: str, default: float) -> float:
    """A null says "no cap"; an absent field means the family's default."""
    if name in fields.raw and fields.raw[name] is None:
        return 0.0
    return fields.number(name, default)


def _gpt2(fields: Fields, common: dict[str, Any]) -> ModelConfig:
    hidden, heads = fields.count("n_embd", 768), fields.count("n_head", 12)
    layers = fields.count("n_layer", 12)
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
        norm_eps=fields.number("layer_norm_epsilon", 1e-5),
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


def _deepseek(fields: Fields, experts: Experts, interleaved: bool) -> dict[str, Any]:
    latent = Latent(
        query_rank=fields.count("q_lora_rank", 0, low=0),
        rank=fields.count("kv_lora_rank", 512),
        nope=fields.count("qk_nope_head_dim", 128),
        rope=fields.count("qk_rope_head_dim", 64),
        value=fields.count("v_head_dim", 128),
    )
    layers = fields.count("num_hidden_layers")
    first = fields.count("first_k_dense_replace", 0, low=0)
    bias = fields.flag("attention_bias")
    own = _common(fields, head_dim=latent.rope, qkv_bias=bias, out_bias=bias)
    rotary = read_rotary(fields, latent.rope, interleaved)
    return own | {
        "rotary": rotary,
        "latent": latent,
        "kv_heads": own["heads"],
        "experts": experts,
        "expert_layers": tuple(layer >= first for layer in range(layers)),
        "attention_scale": (latent.nope + latent.rope) ** -0.5 * _yarn_scale(fields, rotary),
    }


def _yarn_scale(fields: Fields, rotary: Rotary) -> float:
    """DeepSeek sharpens attention by the square of yarn's magnitude at `mscale_all_dim`."""
    scaling = fields.inner("rope_parameters") or fields.inner("rope_scaling")
    if rotary.kind == "default" or scaling is None:
        return 1.0
    all_dim = scaling.number("mscale_all_dim", 0.0)
    return yarn_magnitude(rotary.factor, all_dim) ** 2 if all_dim else 1.0


def _deepseek_v2(fields: Fields, common: dict[str, Any]) -> ModelConfig:
    methods = {"greedy": "greedy", "group_limited_greedy": "group"}
    grouped = fields.choice("topk_method", "greedy", methods) == "group"
    width = fields.count("moe_intermediate_size", 1407)
    # `norm_topk_prob` is read by no published V2 implementation together with scaling: ignored.
    experts = Experts(
        count=fields.count("n_routed_experts", 64),
        per_token=fields.count("num_experts_per_tok"),
        width=width,
        shared=width * fields.count("n_shared_experts", 2),
        normalize=False,
        scaling=fields.number("routed_scaling_factor", 1.0),
        groups=fields.count("n_group") if grouped else 1,
        top_groups=fields.count("topk_group") if grouped else 1,
    )
    own = _deepseek(fields, experts, interleaved=True)
    return ModelConfig(**common, **own | {"mlp_bias": fields.flag("mlp_bias")})


def _deepseek_v3(fields: Fields, common: dict[str, Any]) -> ModelConfig:
    width = fields.count("moe_intermediate_size", 2048)
    experts = Experts(
        count=fields.count("n_routed_experts", 256),
        per_token=fields.count("num_experts_per_tok", 8),
        width=width,
        shared=width * fields.count("n_shared_experts", 1),
        score="sigmoid",
        normalize=fields.flag("norm_topk_prob", True),
        scaling=fields.number("routed_scaling_factor", 2.5),
        groups=fields.count("n_group", 8),
        top_groups=fields.count("topk_group", 4),
        group_score="top2",
        correction=True,
    )
    interleaved = fields.flag("rope_interleave", True)
    return ModelConfig(**common, **_deepseek(fields, experts, interleaved))


FAMILIES: dict[str, tuple[str, Callable[[Fields, dict[str, Any]], ModelConfig]]] = {
    "LlamaForCausalLM": ("llama", _llama),
    "MistralForCausalLM": ("mistral", _mistral),
    "Qwen2ForCausalLM": ("qwen2", _qwen2),
    "Qwen3ForCausalLM": ("qwen3", _qwen3),
    "MixtralForCausalLM": ("mixtral", _mixtral),
    "Qwen3MoeForCausalLM": ("qwen3_moe", _qwen3_moe),
    "GPT2LMHeadModel": ("gpt2", _gpt2),
    "Gemma2ForCausalLM": ("gemma2", _gemma2),
    "DeepseekV2ForCausalLM": ("deepseek_v2", _deepseek_v2),
    "DeepseekV3ForCausalLM": ("deepseek_v3", _deepseek_v3),
}


def supported() -> list[str]:
    """The architectures this engine runs, as `config.json` names them."""
    return list(FAMILIES)
