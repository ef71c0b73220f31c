"""Parameters of a checkpoint: names, shapes and roles of its tensors, for each architecture.

The transformer asks for weights by role (`query`, `gate`, `experts.3.down` …); only this file knows
what Hugging Face checkpoints call them.
"""

from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING

from engine.models.config import Experts, Index, ModelConfig
from engine.models.tensors.llada import llada_layer
from engine.models.tensors.parameter import Parameter, linear, one, whole
from engine.models.tensors.recurrent import recurrent_parameters

if TYPE_CHECKING:
    from torch import Tensor

KEPT = ("key", "value")  # roles of what a layer caches begin so
OUTER = {  # root, embedding, last norm and head of families that call them otherwise
    "gpt2": ("transformer", "wte", "ln_f", "lm_head"),
    "llada": ("model.transformer", "wte", "ln_f", "model.transformer.ff_out"),
    "nemotron_h": ("backbone", "embeddings", "norm_f", "lm_head"),
}
USUAL = ("model", "embed_tokens", "norm", "lm_head")


def outer_parameters(config: ModelConfig) -> list[Parameter]:
    """Embeddings, last norm and output head."""
    root, embedding, norm, head = OUTER.get(config.family, USUAL)
    found = [one(f"{root}.{embedding}.weight", "embedding", config.vocab, config.hidden)]
    if config.rotary is None:
        found += [one(f"{root}.wpe.weight", "positions", config.max_positions, config.hidden)]
    found += _norm(config, f"{root}.{norm}", "norm")
    if config.layer_inputs is not None:
        part, wide = config.layer_inputs, config.layers * config.layer_inputs.size
        table = f"{root}.embed_tokens_per_layer.weight"
        found += [one(table, "layer_embedding", part.vocab, wide)]
        name = f"{root}.per_layer_model_projection"
        found += linear(name, "layer_projection", wide, config.hidden, False)
        found += [one(f"{root}.per_layer_projection_norm.weight", "layer_norm", part.size)]
    if not config.tied:
        found += [one(f"{head}.weight", "head", config.vocab, config.hidden)]
    if config.streams and config.streams.count > 1:
        count, root = config.streams.count, f"{root}.aggregate_layer"
        found += linear(f"{root}.0", "mix_in", config.hidden, count * config.hidden, True)
        found += linear(f"{root}.2", "mix_out", count, config.hidden, True)
    return found


def layer_parameters(config: ModelConfig, layer: int) -> list[Parameter]:
    """One layer's tensors."""
    if config.family == "gpt2":
        return _gpt2_layer(config, f"transformer.h.{layer}")
    if config.family == "llada":
        rows, kv_rows = config.heads * config.head_dim, config.kv_heads * config.head_dim
        widths = config.hidden, rows, kv_rows, config.width
        return llada_layer(f"model.transformer.blocks.{layer}", *widths, config.qkv_bias)
    if config.halves:
        return _half_layer(config, layer, f"backbone.layers.{layer}")
    root = f"model.layers.{layer}"
    found = []
    if config.pre_norm:
        found += _norm(config, f"{root}.input_layernorm", "attention_norm")
    if config.recurrence is not None and config.keeps_state(layer):
        found += recurrent_parameters(config.recurrence, root, config.hidden)
    else:
        attend = _latent if config.latent else _attention
        own = attend(config.at(layer), f"{root}.self_attn")
        shared = config.source(layer) != layer  # others write its keys and values
        found += [p for p in own if not (shared and p.roles[0][0].startswith(KEPT))]
    after = f"{root}.post_attention_layernorm"
    if config.sandwich:
        found += _norm(config, after, "attention_post_norm")
        if config.pre_norm:
            found += _norm(config, f"{root}.pre_feedforward_layernorm", "mlp_norm")
        found += _norm(config, f"{root}.post_feedforward_layernorm", "mlp_post_norm")
    else:
        found += _norm(config, after, "mlp_norm")
    if config.expert_layers[layer]:
        found += _experts(config, root)
        if not config.fed_twice:
            return found
    if config.one_projection:
        return found + _one_gated(config, f"{root}.mlp")
    if config.layer_inputs is not None:
        size, hidden = config.layer_inputs.size, config.hidden
        found += linear(f"{root}.per_layer_input_gate", "input_gate", size, hidden, False)
        found += linear(f"{root}.per_layer_projection", "input_out", hidden, size, False)
        found += _norm(config, f"{root}.post_per_layer_input_norm", "input_norm")
    if config.layer_scale:
        found += [whole(f"{root}.layer_scalar", "layer_scalar", 1)]
    found += _feed_forward(config, f"{root}.mlp", "", config.at(layer).width)
    if config.duo is not None:
        found += _feed_forward(config, f"{root}.small_mlp", "small.", config.duo.small)
        found += linear(f"{root}.mlp.router", "router", config.layers, config.hidden, True)
    return found


def _half_layer(config: ModelConfig, layer: int, root: str) -> list[Parameter]:
    """A norm and what it stands before: a mixer of tokens, a feed-forward or experts."""
    mixes = config.mixes(layer)
    found = _norm(config, f"{root}.norm", "attention_norm" if mixes else "mlp_norm")
    if config.recurrence is not None and config.keeps_state(layer):
        return found + recurrent_parameters(config.recurrence, root, config.hidden)
    if mixes:
        return found + _attention(config, f"{root}.mixer")
    if config.expert_layers[layer]:
        return found + _experts(config, root)
    return found + _feed_forward(config, f"{root}.mixer", "", config.width)


@lru_cache(maxsize=4)  # of experts there are tens of thousands, and a plan goes over them often
def all_parameters(config: ModelConfig) -> tuple[Parameter, ...]:
    """Every tensor of the checkpoint, outer ones first."""
    found = outer_parameters(config)
    for layer in range(config.layers):
        found += layer_parameters(config, layer)
    return tuple(found)


def _norm(config: ModelConfig, name: str, role: str) -> list[Parameter]:
    found = [one(f"{name}.weight", role, config.hidden)]
    if config.norm == "layer":
        found += [one(f"{name}.bias", f"{role}.bias", config.hidden)]
    return found


def _attention(config: ModelConfig, root: str) -> list[Parameter]:
    rows, kv_rows = config.heads * config.head_dim, config.kv_heads * config.head_dim
    if config.one_projection:
        thirds = (("query", rows), ("key", kv_rows), ("value", kv_rows))
        found = [Parameter(f"{root}.qkv_proj.weight", (rows + 2 * kv_rows, config.hidden), thirds)]
    else:
        both = 2 * rows if config.query_gate else rows
        found = linear(f"{root}.q_proj", "query", both, config.hidden, config.qkv_bias)
        found += linear(f"{root}.k_proj", "key", kv_rows, config.hidden, config.qkv_bias)
        if not config.key_is_value:
            found += linear(f"{root}.v_proj", "value", kv_rows, config.hidden, config.qkv_bias)
    found += linear(f"{root}.o_proj", "out", config.hidden, rows, config.out_bias)
    if config.qk_norm:
        at_once = config.qk_norm_whole
        found += [one(f"{root}.q_norm.weight", "query_norm", rows if at_once else config.head_dim)]
        found += [one(f"{root}.k_norm.weight", "key_norm", kv_rows if at_once else config.head_dim)]
    if config.sinks:
        found += [one(f"{root}.sinks", "sinks", config.heads)]
    if config.paths:
        found += [one(f"{root}.path_key.weight", "path_key", config.paths, kv_rows)]
        found += [one(f"{root}.path_value.weight", "path_value", config.paths, kv_rows)]
    if config.streams and config.streams.prefix:
        streams = config.streams
        shape = streams.count, config.kv_heads, streams.prefix, config.head_dim
        found += [one(f"{root}.prefix_k", "prefix_key", *shape)]
        found += [one(f"{root}.prefix_v", "prefix_value", *shape)]
    return found


def _latent(config: ModelConfig, root: str) -> list[Parameter]:
    part = config.latent
    assert part is not None
    query_rows = config.heads * (part.nope + part.rope)
    if part.query_rank:
        found = linear(
            f"{root}.q_a_proj", "query_down", part.query_rank, config.hidden, config.qkv_bias
        )
        found += [one(f"{root}.q_a_layernorm.weight", "query_norm", part.query_rank)]
        found += [one(f"{root}.q_b_proj.weight", "query", query_rows, part.query_rank)]
    else:
        found = [one(f"{root}.q_proj.weight", "query", query_rows, config.hidden)]
    rank = part.rank + part.rope
    kv_rows = config.heads * (part.nope + part.value)
    found += linear(
        f"{root}.kv_a_proj_with_mqa", "latent_down", rank, config.hidden, config.qkv_bias
    )
    found += [one(f"{root}.kv_a_layernorm.weight", "latent_norm", part.rank)]
    found += [one(f"{root}.kv_b_proj.weight", "latent_up", kv_rows, part.rank)]
    if config.index is not None:
        found += _index(config.index, f"{root}.indexer", config.hidden, part.query_rank)
    rows = config.heads * part.value
    return found + linear(f"{root}.o_proj", "out", config.hidden, rows, config.out_bias)


def _index(index: Index, root: str, hidden: int, rank: int) -> list[Parameter]:
    found = [one(f"{root}.wq_b.weight", "index_query", index.heads * index.size, rank)]
    found += [one(f"{root}.wk.weight", "index_key", index.size, hidden)]
    found += [one(f"{root}.k_norm.weight", "index_norm", index.size)]
    found += [one(f"{root}.k_norm.bias", "index_norm.bias", index.size)]
    return [*found, one(f"{root}.weights_proj.weight", "index_weight", index.heads, hidden)]


def _feed_forward(config: ModelConfig, root: str, role: str, width: int) -> list[Parameter]:
    return _gated(root, role, config.hidden, width, config.mlp_bias, config.gated)


def _gated(
    root: str, role: str, hidden: int, width: int, bias: bool, gated: bool = True
) -> list[Parameter]:
    found = linear(f"{root}.gate_proj", f"{role}gate", width, hidden, bias) if gated else []
    found += linear(f"{root}.up_proj", f"{role}up", width, hidden, bias)
    return found + linear(f"{root}.down_proj", f"{role}down", hidden, width, bias)


def _one_gated(config: ModelConfig, root: str) -> list[Parameter]:
    """A feed-forward that stores gate and up as one tensor."""
    width, hidden = config.width, config.hidden
    halves = (("gate", width), ("up", width))
    into = Parameter(f"{root}.gate_up_proj.weight", (2 * width, hidden), halves)
    return [into, one(f"{root}.down_proj.weight", "down", hidden, width)]


def _experts(config: ModelConfig, layer_root: str) -> list[Parameter]:
    moe, hidden = config.experts, config.hidden
    assert moe is not None
    if moe.names == "stacked":
        return _stacked(moe, f"{layer_root}.mlp", hidden)
    if moe.names == "beside":
        return _beside(config, moe, layer_root)
    root = f"{layer_root}.{moe.names}"
    found = [one(f"{root}.gate.weight", "router", moe.count, hidden)]
    if moe.correction:
        where = root if moe.names == "block_sparse_moe" else f"{root}.gate"
        found += [one(f"{where}.e_score_correction_bias", "correction", moe.count)]
    if moe.shared:
        name = "shared_expert" if moe.shared_gate else "shared_experts"
        found += _feed_forward(config, f"{root}.{name}", "shared.", moe.shared)
    if moe.shared_gate:
        found += [one(f"{root}.shared_expert_gate.weight", "shared.open", 1, hidden)]
    if moe.latent:
        found += linear(f"{root}.fc1_latent_proj", "latent_in", moe.latent, hidden, config.mlp_bias)
        found += linear(
            f"{root}.fc2_latent_proj", "latent_out", hidden, moe.latent, config.mlp_bias
        )
    plain, inner = moe.names != "block_sparse_moe", moe.latent or hidden
    gate, up, down = ("gate_proj", "up_proj", "down_proj") if plain else ("w1", "w3", "w2")
    for expert in range(moe.count):
        name, role = f"{root}.experts.{expert}", f"experts.{expert}."
        if config.gated:
            found += [one(f"{name}.{gate}.weight", f"{role}gate", moe.width, inner)]
        found += [one(f"{name}.{up}.weight", f"{role}up", moe.width, inner)]
        found += [one(f"{name}.{down}.weight", f"{role}down", inner, moe.width)]
    return found


def _stacked(moe: Experts, root: str, hidden: int) -> list[Parameter]:
    """Experts by the names they would have alone (see `engine.models.loading.stacked_experts`)."""
    found = linear(f"{root}.router", "router", moe.count, hidden, moe.bias)
    for expert in range(moe.count):
        name, role = f"{root}.experts.{expert}", f"experts.{expert}."
        found += _gated(name, role, hidden, moe.width, moe.bias)
    return found


def _beside(config: ModelConfig, moe: Experts, root: str) -> list[Parameter]:
    """Experts beside a feed-forward, what their router reads, and the norms of both."""
    hidden, router = config.hidden, f"{root}.router"
    found = linear(f"{router}.proj", "router", moe.count, hidden, False)
    found += [whole(f"{router}.scale", "router_scale", hidden)]
    found += [whole(f"{router}.per_expert_scale", "router_gain", moe.count)]
    found += _norm(config, f"{root}.post_feedforward_layernorm_1", "dense_post_norm")
    found += _norm(config, f"{root}.pre_feedforward_layernorm_2", "experts_norm")
    found += _norm(config, f"{root}.post_feedforward_layernorm_2", "experts_post_norm")
    for expert in range(moe.count):
        name, role = f"{root}.experts.{expert}", f"experts.{expert}."
        found += _gated(name, role, hidden, moe.width, False)
    return found


def _gpt2_layer(config: ModelConfig, root: str) -> list[Parameter]:
    hidden, width = config.hidden, config.width
    thirds = (("query", hidden), ("key", hidden), ("value", hidden))
    biases = tuple((f"{role}.bias", rows) for role, rows in thirds)
    found = _norm(config, f"{root}.ln_1", "attention_norm")
    found += [Parameter(f"{root}.attn.c_attn.weight", (hidden, 3 * hidden), thirds, True)]
    found += [Parameter(f"{root}.attn.c_attn.bias", (3 * hidden,), biases)]
    found += _conv(f"{root}.attn.c_proj", "out", hidden, hidden)
    found += _norm(config, f"{root}.ln_2", "mlp_norm")
    found += _conv(f"{root}.mlp.c_fc", "up", width, hidden)
    return found + _conv(f"{root}.mlp.c_proj", "down", hidden, width)


def _conv(name: str, role: str, out: int, into: int) -> list[Parameter]:
    weight = Parameter(f"{name}.weight", (into, out), ((role, out),), True)
    return [weight, one(f"{name}.bias", f"{role}.bias", out)]


def roles(parameters: list[Parameter], weights: "Mapping[str, Tensor]") -> "dict[str, Tensor]":
    """Views of the checkpoint's tensors by role, each as [out, in]; gradients flow through."""
    found: dict[str, Tensor] = {}
    for parameter in parameters:
        tensor = weights[parameter.name]
        tensor = tensor.T if parameter.transposed else tensor
        if len(parameter.roles) == 1:
            found[parameter.roles[0][0]] = tensor
            continue
        sizes = [rows for _, rows in parameter.roles]
        for (role, _), part in zip(parameter.roles, tensor.split(sizes), strict=True):
            found[role] = part
    return found
