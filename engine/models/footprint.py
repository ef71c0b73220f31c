"""Footprint: bytes of a model's weights and cache and the cost of a step, from its config alone.

Parameters and bytes are exact: they are summed over the very tensors a checkpoint holds. Flops are
those of matrix products and attention (a multiply-add is two); norms, rotary and activations are
left out. Which experts a batch reaches depends on its tokens; their weight bytes are the expected
number under even routing.
"""

from collections import defaultdict
from dataclasses import dataclass, replace
from functools import lru_cache
from math import prod

import numpy as np

from engine.models.config import ModelConfig
from engine.models.kv import BYTES, cache_spec
from engine.models.parameters import all_parameters, layer_parameters, outer_parameters

RECURRENCE, INDEX = "recurrence", "index"
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
    "router": "router",
    "correction": "router",
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
    return parameter_count(config) * BYTES[dtype or config.dtype]


@dataclass(frozen=True, slots=True)
class _Totals:
    """Over all layers: parameters of each op, its matrices', and inputs + outputs per token."""

    weights: dict[str, int]
    matrices: dict[str, int]
    widths: dict[str, int]
    outer: dict[str, int]
    windows: tuple[tuple[int, int], ...]  # (window, how many layers have it)


@lru_cache(maxsize=64)
def _totals(config: ModelConfig) -> _Totals:
    weights: dict[str, int] = defaultdict(int)
    matrices: dict[str, int] = defaultdict(int)
    widths: dict[str, int] = defaultdict(int)
    for layer in range(config.layers):
        for parameter in layer_parameters(config, layer):
            op = OPS.get(parameter.roles[0][0].split(".")[0], "norms")
            weights[op] += prod(parameter.shape)
            if op == "norms":  # and embeddings of paths: no products either
                widths[op] += 2 * config.hidden
            elif len(parameter.shape) > 1:
                matrices[op] += prod(parameter.shape)
                widths[op] += sum(parameter.shape)
    outer = {p.roles[0][0]: prod(p.shape) for p in outer_parameters(config)}
    return _Totals(dict(weights), dict(matrices), dict(widths), outer, windows_of(config))


def windows_of(config: ModelConfig) -> tuple[tuple[int, int], ...]:
    """(window, how many attending layers have it), the smallest first. An index that keeps so many
    tokens is a window for what attention costs."""
    if config.index is not None:
        return ((config.index.kept, config.layers),)
    every = [w for layer, w in enumerate(config.windows) if not config.keeps_state(layer)]
    return tuple((window, every.count(window)) for window in sorted(set(every)))


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
    return OpWork("embedding", 0.0, rows * width, 0.0, tokens * config.hidden * width)


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
        sizes = config.head_dim, config.head_dim
    pairs = touched = 0
    for window, layers in totals.windows:
        pairs += layers * int(visible_pairs(new, context, window).sum())
        seen = np.minimum(context, window + new - 1) if window else context
        touched += layers * int(seen.sum() + new.sum())
    layers = max(1, config.attending)
    alone = replace(config, streams=None)  # a token of every stream counts as one
    per_layer = cache_spec(alone, "float32").bytes_per_token() / 4 / layers
    per_layer -= config.index.size if config.index is not None else 0
    tokens = int(new.sum()) * layers
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
    part, layers = config.delta, sum(config.recurrent)
    assert part is not None
    # A token lets the matrix decay, reads it by key, adds an outer product, reads it by query.
    each = 7 * part.value_heads * part.key * part.value + 2 * part.channels * part.kernel
    moved = 2 * sequences * cache_spec(config).bytes_per_state()
    numbers = part.channels + part.value_heads * part.value
    return OpWork(
        RECURRENCE, float(each * tokens * layers), weights, moved, tokens * numbers * layers * width
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
