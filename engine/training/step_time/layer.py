"""A decoder layer as operators: its products, attention and row traffic, forward and backward.

Counted from a `ModelConfig` for one of `tensor` ranks. Matrices that make heads or feed-forward
columns are cut by outputs, those that gather them by inputs (Megatron-LM, arXiv 1909.08053);
routers and down-projections of latent attention are whole on every rank. Shape letters: T tokens,
out and in of a weight [out, in].
"""

from dataclasses import dataclass
from functools import lru_cache

from engine.core.errors import BadInput
from engine.models.config import ModelConfig

GATED, PLAIN = 2, 1  # matrices into a feed-forward


@dataclass(frozen=True, slots=True)
class Product:
    """x[T, into] · Wᵀ with W[out, into], as one rank has it. `again`: whether half recomputation,
    which keeps every other product, does it again."""

    name: str
    out: int
    into: int
    again: bool = False


@dataclass(frozen=True, slots=True)
class Layer:
    """One layer on one tensor rank.

    `biases`: numbers of biases and norms, whole. `heads`, `kv_heads`: of this rank. `query`,
    `value`: numbers of a head's key and value. `window`: 0 where attention sees everything.
    `experts`: products of one expert, `routed` rows of each token, `here` experts on this rank.
    `widths`: of a feed-forward's inner rows on this rank, expert rows of a token included.
    `biased`: whether experts' products have biases. `groups`: (chosen, all) of experts.
    """

    products: tuple[Product, ...]
    biases: int
    hidden: int
    heads: int
    kv_heads: int
    query: int
    value: int
    window: int
    widths: float
    gated: bool
    norms: int
    rotary: bool
    rms: bool
    experts: tuple[Product, ...] = ()
    routed: int = 0
    here: int = 0
    biased: bool = False
    groups: tuple[int, int] = (1, 1)

    @property
    def inside(self) -> int:
        """Numbers of matrices of the experts here."""
        return self.here * sum(each.out * each.into for each in self.experts)

    @property
    def weights(self) -> int:
        """Numbers of matrices, those of the experts here included."""
        return sum(each.out * each.into for each in self.products) + self.inside

    @property
    def parameters(self) -> int:
        """Numbers of everything that is trained."""
        return self.weights + self.biases

    @property
    def multiplied(self) -> int:
        """Numbers of matrices that one token meets."""
        dense = sum(each.out * each.into for each in self.products)
        return dense + self.routed * sum(each.out * each.into for each in self.experts)

    def pairs(self, sequence: int) -> float:
        """Of queries and keys in a sequence that causal attention looks at."""
        seen = min(self.window or sequence, sequence)
        return seen * (seen + 1) / 2 + (sequence - seen) * seen


def layers(config: ModelConfig, tensor: int = 1, expert: int = 1) -> list[Layer]:
    """Every layer in order, as one of `tensor` ranks and `expert` ranks has it.

    Raises BadInput where heads, widths or experts do not divide, and for what is not counted yet.
    """
    for what, there in (
        ("layers with a recurrent state", any(config.recurrent)),
        ("attention that an index thins out", config.index is not None),
        ("heads of two sizes", config.wide_heads is not None),
    ):
        if there:
            raise BadInput(
                f"model {config.architecture}: has {what}; a training step's time is not known "
                "for it yet"
            )
    found = zip(config.windows, config.expert_layers, strict=True)
    return [_layer(config, window, routed, tensor, expert) for window, routed in found]


@lru_cache(maxsize=1024)
def _layer(config: ModelConfig, window: int, routed: bool, tensor: int, expert: int) -> Layer:
    heads = _divided("heads", config.heads, tensor)
    kv_heads = max(1, config.kv_heads // tensor)
    if config.kv_heads % tensor and tensor % config.kv_heads:
        _divided("key/value heads", config.kv_heads, tensor)
    latent = config.latent
    if latent is not None:
        products, query, value = _latent(config, heads), latent.nope + latent.rope, latent.value
    else:
        products, query, value = (
            _attention(config, heads, kv_heads),
            config.head_dim,
            config.head_dim,
        )
    into = GATED if config.gated else PLAIN
    experts: tuple[Product, ...] = ()
    here = chosen = 0
    width = float(_divided("feed-forward width", config.width, tensor))
    moe = config.experts if routed else None
    if moe is None:
        products += _feed(config.hidden, int(width), into)
    else:
        products.append(Product("router", moe.count, config.hidden))
        if moe.shared:
            products += _feed(config.hidden, _divided("shared width", moe.shared, tensor), into)
        inner = _divided("expert width", moe.width, tensor)
        experts, chosen = tuple(_feed(config.hidden, inner, into)), moe.per_token
        here = _divided("experts", moe.count, expert)
        width = moe.shared / tensor + chosen * inner
    norms = config.norms
    return Layer(
        tuple(products), _biases(config, norms, moe is None), config.hidden, heads, kv_heads, query,
        value, window, width, config.gated, norms, config.rotary is not None, config.norm == "rms",
        experts, chosen, here, moe is not None and moe.bias,
        (moe.top_groups, moe.groups) if moe is not None else (1, 1),
    )  # fmt: skip


def _attention(config: ModelConfig, heads: int, kv_heads: int) -> list[Product]:
    rows = (heads + 2 * kv_heads) * config.head_dim
    return [
        Product("qkv", rows, config.hidden),
        Product("out", config.hidden, heads * config.head_dim, again=True),
    ]


def _latent(config: ModelConfig, heads: int) -> list[Product]:
    part = config.latent
    assert part is not None
    rows = heads * (part.nope + part.rope)
    found = [Product("query", rows, part.query_rank or config.hidden)]
    if part.query_rank:
        found.insert(0, Product("query_down", part.query_rank, config.hidden, again=True))
    return [
        *found,
        Product("latent_down", part.rank + part.rope, config.hidden),
        Product("latent_up", heads * (part.nope + part.value), part.rank, again=True),
        Product("out", config.hidden, heads * part.value),
    ]


def _feed(hidden: int, width: int, into: int) -> list[Product]:
    return [
        Product("up", into * width, hidden),
        Product("down", hidden, width, again=True),
    ]


def _biases(config: ModelConfig, norms: int, dense: bool) -> int:
    """Biases and norms of a layer, exactly as checkpoints hold them; whole on every rank."""
    each = 2 * config.hidden if config.norm == "layer" else config.hidden
    found = norms * each
    into = GATED if config.gated else PLAIN
    if config.latent is not None:
        found += config.latent.rank + config.latent.query_rank
        if config.qkv_bias:
            found += config.latent.query_rank + config.latent.rank + config.latent.rope
    elif config.qkv_bias:
        found += (config.heads + 2 * config.kv_heads) * config.head_dim
    found += config.hidden if config.out_bias else 0
    if config.qk_norm and config.latent is None:
        heads = config.heads + config.kv_heads if config.qk_norm_whole else 2
        found += heads * config.head_dim
    if config.mlp_bias and dense:
        found += into * config.width + config.hidden
    found += config.heads if config.sinks else 0
    moe = None if dense else config.experts
    if moe is not None:
        found += moe.count if moe.correction else 0
        if moe.bias:
            found += moe.count * (1 + into * moe.width + config.hidden)
        if moe.shared and config.mlp_bias:
            found += into * moe.shared + config.hidden
    return found


def outer_parameters(config: ModelConfig) -> tuple[int, int]:
    """(embeddings, output head and last norm): numbers; a tied head is the embedding's."""
    last = 2 * config.hidden if config.norm == "layer" else config.hidden
    table = config.vocab * config.hidden
    positions = 0 if config.rotary is not None else config.max_positions * config.hidden
    return table + positions, last + (0 if config.tied else table)


def parameters(config: ModelConfig) -> int:
    """Numbers of the whole model."""
    return sum(outer_parameters(config)) + sum(each.parameters for each in layers(config))


def model_flops(config: ModelConfig, sequence: int, tokens: float, causal: bool = False) -> float:
    """A step's flops without what is computed again: 6 for each matrix's number a token meets, the
    head's included, and 12 L H D s for attention's scores and values (Chowdhery et al.,
    arXiv 2204.02311, appendix B); `causal` counts the half that a causal mask leaves.
    """
    found = 0.0
    for each in layers(config):
        pairs = each.pairs(sequence) / sequence if causal or each.window else float(sequence)
        attend = 2 * each.heads * (each.query + each.value) * pairs
        found += 3 * (2 * each.multiplied + attend)
    return tokens * (found + 6 * config.vocab * config.hidden)


def _divided(what: str, number: int, parts: int) -> int:
    if number % parts:
        raise BadInput(f"split: {number} {what} do not divide among {parts} ranks; take a divisor")
    return number // parts
