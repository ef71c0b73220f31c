"""Footprint: bytes of a model's weights and cache and the cost of a step, from its config alone.

Parameters and bytes are exact: they are summed over the very tensors a checkpoint holds. Flops are
those of matrix products and attention (a multiply-add is two); norms, rotary and activations are
left out. Which experts a batch reaches depends on its tokens; their weight bytes are the expected
number under even routing.
"""

from collections import defaultdict
from dataclasses import dataclass
from functools import lru_cache
from math import gcd, prod
from typing import NamedTuple

import numpy as np

from engine.models.config import ModelConfig
from engine.models.kv import BYTES, cache_spec
from engine.models.parameters import all_parameters, layer_parameters, outer_parameters

RECURRENCE, INDEX, MLP, SMALL_MLP = "recurrence", "index", "mlp", "small_mlp"
OPS = {
    "query": "qkv",
    "key": "qkv",
    "value": "qkv",
    "query_down": "qkv",
    "latent_down": "qkv",
    "latent_up": "latent_up",
    "out": "out",
    "gate": "mlp",
    "up": "mlp",
    "down": "mlp",
    "shared": "shared_expert",
    "small": SMALL_MLP,
    "router": "router",
    "correction": "router",
    "router_scale": "router",
    "router_gain": "router",
    "experts": "experts",
    "index_query": INDEX,
    "index_key": INDEX,
    "index_weight": INDEX,
    "delta": "delta",
    "delta_gate": "delta",
    "rates": "delta",
    "rates_decay": "delta",
    "convolution": RECURRENCE,
    "step_bias": RECURRENCE,
    "decay": RECURRENCE,
    "delta_norm": RECURRENCE,
    "mamba": "mamba",
    "skip": RECURRENCE,
    "mamba_norm": RECURRENCE,
    "input_gate": "layer_inputs",
    "input_out": "layer_inputs",
    "latent_in": "experts_latent",
    "latent_out": "experts_latent",
}


@dataclass(frozen=True, slots=True)
class OpWork:
    """One kind of operation summed over all layers of a step.

    `activation_bytes`: inputs read and outputs written, besides weights and cache.
    """

    name: str
    flops: float
    weight_bytes: float
    cache_bytes: float
    activation_bytes: float

    @property
    def bytes(self) -> float:
        """All bytes that cross the memory bus if nothing stays in a cache on the way."""
        return self.weight_bytes + self.cache_bytes + self.activation_bytes


def parameter_count(config: ModelConfig) -> int:
    """Numbers in the checkpoint; a tied head counts once."""
    return sum(prod(parameter.shape) for parameter in all_parameters(config))


def active_parameter_count(config: ModelConfig) -> int:
    """Numbers one token meets: of the experts only its own."""
    totals = _totals(config)
    routed = totals.weights.get("experts", 0)
    share = config.experts.per_token / config.experts.count if config.experts else 0
    return parameter_count(config) - routed + round(routed * share)


def weight_bytes(config: ModelConfig, dtype: str | None = None) -> int:
    """Bytes of the weights in `dtype` (by default the checkpoint's own)."""
    streams = config.streams
    copies = streams.count if streams is not None and streams.fault == "copied" else 1
    return copies * parameter_count(config) * BYTES[dtype or config.dtype]


class Reach(NamedTuple):
    """Layers that attend as far: `heads` counts each as often as its heads have `units(…)[0]`
    numbers, `cached` as often as its keys have `units(…)[1]`. Mostly both are the layers."""

    window: int
    heads: int
    cached: int


@dataclass(frozen=True, slots=True)
class _Totals:
    """Over all layers: parameters of each op, its matrices', and inputs + outputs per token.
    `layers`: that have the op."""

    weights: dict[str, int]
    layers: dict[str, int]
    matrices: dict[str, int]
    widths: dict[str, int]
    outer: dict[str, int]
    windows: tuple[Reach, ...]


@lru_cache(maxsize=64)
def _totals(config: ModelConfig) -> _Totals:
    weights: dict[str, int] = defaultdict(int)
    matrices: dict[str, int] = defaultdict(int)
    widths: dict[str, int] = defaultdict(int)
    layers: dict[str, set[int]] = defaultdict(set)
    for layer in range(config.layers):
        for parameter in layer_parameters(config, layer):
            op = OPS.get(parameter.roles[0][0].split(".")[0], "norms")
            weights[op] += prod(parameter.shape)
            layers[op].add(layer)
            if op == "norms":  # and embeddings of paths: no products either
                widths[op] += 2 * config.hidden
            elif len(parameter.shape) > 1:
                matrices[op] += prod(parameter.shape)
                widths[op] += sum(parameter.shape)
    outer = {p.roles[0][0]: prod(p.shape) for p in outer_parameters(config)}
    have = {op: len(those) for op, those in layers.items()} | {"attention": config.attending}
    return _Totals(dict(weights), have, dict(matrices), dict(widths), outer, windows_of(config))


def layers_with(config: ModelConfig, op: str) -> int:
    """Layers that have a kind of operation: a recurrent, an attention and a feed-forward layer each
    have their own alone, as experts and dense ones do. The embedding and the head count once."""
    return _totals(config).layers.get(op, 1)


def units(config: ModelConfig) -> tuple[int, int]:
    """Numbers of a head, and of a token's cached keys: the most that divide every layer's."""
    if config.latent is not None:
        return config.latent.rank, config.latent.rank + config.latent.rope
    every = [config.at(layer) for layer in range(config.layers) if config.attends(layer)]
    return gcd(*(e.head_dim for e in every)), gcd(*(e.kv_heads * e.head_dim for e in every))


def windows_of(config: ModelConfig) -> tuple[Reach, ...]:
    """Attending layers by their window, the smallest first. An index that keeps so many tokens is a
    window for what attention costs. A layer that shares another's keys counts as if it wrote them.
    """
    if config.index is not None:
        return (Reach(config.index.kept, config.layers, config.layers),)
    head, keys = units(config)
    found: dict[int, Reach] = {}
    for layer, window in enumerate(config.windows):
        if not config.attends(layer):
            continue
        own, so_far = config.at(layer), found.get(window, Reach(window, 0, 0))
        wide = 1 if config.latent else own.head_dim // head
        stored = 1 if config.latent else own.kv_heads * own.head_dim // keys
        found[window] = Reach(window, so_far.heads + wide, so_far.cached + stored)
    return tuple(found[window] for window in sorted(found))


def step_work(
    config: ModelConfig,
    new_tokens_B: np.ndarray | list[int],
    context_B: np.ndarray | list[int],
    *,
    dtype: str | None = None,
    logits: int | None = None,
) -> list[OpWork]:
    """The work of one forward pass over B sequences, one entry for each kind of operation.

    `new_tokens_B`: tokens each sequence brings; `context_B`: tokens its last new token sees, itself
    included. `logits`: rows of the output head (by default one for each sequence).
    """
    new, context = np.asarray(new_tokens_B, np.int64), np.asarray(context_B, np.int64)
    tokens, totals, width = int(new.sum()), _totals(config), BYTES[dtype or config.dtype]
    found = [_embedding(config, tokens, width)]
    for op, numbers in totals.weights.items():
        if op == RECURRENCE:
            found.append(_recurrence(config, numbers * width, tokens, len(new), width))
            continue
        used, read = 1.0, 1.0
        if op == "experts" and config.experts is not None:
            used = config.experts.per_token / config.experts.count
            read = 1 - (1 - used) ** tokens
        if config.duo is not None and op in (MLP, SMALL_MLP, "router"):
            used = config.duo.used(op == MLP, op == SMALL_MLP, config.layers)
            read = float(used > 0)
        cache = (0.0, 0.0)
        if op == INDEX:
            pairs, seen = int(visible_pairs(new, context).sum()), int(context.sum())
            cache = index_work(config, pairs, seen, width)
        found.append(
            OpWork(
                op,
                flops=2.0 * tokens * totals.matrices.get(op, 0) * used + cache[0],
                weight_bytes=numbers * width * read,
                cache_bytes=cache[1],
                activation_bytes=tokens * totals.widths[op] * used * width,
            )
        )
        if op == "qkv":
            found.append(_attention(config, totals, new, context, width))
    return [*found, _head(config, totals, len(new) if logits is None else logits, width)]


def _embedding(config: ModelConfig, tokens: int, width: int) -> OpWork:
    rows = tokens * config.hidden * (1 if config.rotary else 2)
    if (part := config.layer_inputs) is None:
        return OpWork("embedding", 0.0, rows * width, 0.0, tokens * config.hidden * width)
    # Each layer is told an embedding of its own and a projection of the first.
    wide = config.layers * part.size
    numbers, moved = wide * config.hidden, tokens * (config.hidden + wide) * width
    return OpWork(
        "embedding", 2.0 * tokens * numbers, (rows + tokens * wide + numbers) * width, 0.0, moved
    )


def _head(config: ModelConfig, totals: _Totals, rows: int, width: int) -> OpWork:
    numbers = config.vocab * config.hidden
    norm = sum(n for role, n in totals.outer.items() if role.startswith("norm"))
    moved = rows * (config.hidden * width + config.vocab * 4)
    return OpWork("head", 2.0 * rows * numbers, (numbers + norm) * width, 0.0, moved)


def _attention(
    config: ModelConfig, totals: _Totals, new: np.ndarray, context: np.ndarray, width: int
) -> OpWork:
    """Scores and weighted values: each new token against the tokens it sees."""
    if config.latent is not None:
        sizes = config.latent.rank + config.latent.rope, config.latent.rank
    else:
        sizes = units(config)[0], units(config)[0]
    pairs = touched = 0
    for window, heads, cached in totals.windows:
        pairs += heads * int(visible_pairs(new, context, window).sum())
        seen = np.minimum(context, window + new - 1) if window else context
        touched += cached * int(seen.sum() + new.sum())
    per_layer = units(config)[1] * (1 if config.latent else 2)  # of every stream's heads one's
    tokens = int(new.sum()) * sum(each.heads for each in totals.windows)
    return OpWork(
        "attention",
        flops=2.0 * config.heads * sum(sizes) * pairs,
        weight_bytes=0.0,
        cache_bytes=touched * per_layer * width,
        activation_bytes=tokens * config.heads * sum(sizes) * width,
    )


def index_work(config: ModelConfig, pairs: int, seen: int, width: int) -> tuple[float, float]:
    """Flops and bytes of scoring (new token, visible token) pairs, and `seen` cached keys."""
    assert config.index is not None
    part, layers = config.index, config.layers
    return 2.0 * layers * pairs * part.heads * part.size, float(layers * seen * part.size * width)


def _recurrence(
    config: ModelConfig, weights: int, tokens: int, sequences: int, width: int
) -> OpWork:
    """Convolution and state of the layers that keep one: each sequence's is read and written."""
    part, layers = config.recurrence, sum(config.recurrent)
    assert part is not None
    moved = 2 * sequences * cache_spec(config).bytes_per_state()
    numbers = part.channels + part.width
    return OpWork(
        RECURRENCE,
        float(part.flops * tokens * layers),
        weights,
        moved,
        tokens * numbers * layers * width,
    )


def visible_pairs(new_B: np.ndarray, context_B: np.ndarray, window: int = 0) -> np.ndarray:
    """For each sequence, how many (new token, visible token) pairs there are: exact."""
    first = context_B - new_B + 1  # tokens the first new one sees
    pairs = new_B * (first + context_B) // 2
    if not window:
        return pairs
    over = np.maximum(context_B - window, 0)  # how far the last new token overshoots the window
    rows = np.minimum(over, new_B)  # new tokens that overshoot at all
    return pairs - rows * (2 * over - rows + 1) // 2
