"""ModelConfig: what a model is made of, one frozen value read from a Hugging Face `config.json`.

Families differ in fields, not in classes: the transformer is assembled from these values alone.
"""

from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, Literal

from engine.core.errors import BadInput
from engine.kernels.recurrent.sizes import Delta, Mamba
from engine.models.duo.shape import Duo

Activation = Literal["silu", "gelu", "gelu_tanh", "relu", "relu2"]


@dataclass(frozen=True, slots=True)
class Rotary:
    """Rotary position embedding (Su et al., arXiv 2104.09864) and the ways to stretch it.

    `dim`: rotated dimensions of a head. `interleaved`: pairs are neighbours (x0, x1), (x2, x3), …
    instead of halves. `kind`: default, linear, dynamic (NTK by context), llama3, yarn
    (Peng et al., arXiv 2309.00071). `magnitude` multiplies cosine and sine (yarn's attention
    factor). `proportional` turns the first `part` of a head's pairs by the whole head's frequencies
    (Gemma-4). `longrope` slows each pair by a factor of its own (arXiv 2402.13753; Phi-3 and 4).
    """

    dim: int
    theta: float = 10_000.0
    interleaved: bool = False
    kind: Literal["default", "linear", "dynamic", "llama3", "yarn", "proportional", "longrope"] = (
        "default"
    )
    factor: float = 1.0
    original_positions: int = 0  # positions seen in pretraining, before stretching
    low_frequency_factor: float = 1.0  # llama3
    high_frequency_factor: float = 4.0  # llama3
    beta_fast: float = 32.0  # yarn
    beta_slow: float = 1.0  # yarn
    truncate: bool = True  # yarn: whole dimensions at the ends of the ramp
    magnitude: float = 1.0  # yarn, longrope
    part: float = 1.0  # proportional
    slower: tuple[float, ...] = ()  # longrope: by how much, pair by pair


@dataclass(frozen=True, slots=True)
class Latent:
    """Multi-head latent attention (DeepSeek-V2, arXiv 2405.04434, section 2.1), widths by part.

    `query_rank` is 0 where queries are not compressed. A cached token is `rank + rope` numbers.
    """

    query_rank: int
    rank: int
    nope: int
    rope: int
    value: int


@dataclass(frozen=True, slots=True)
class Index:
    """An index of tokens beside latent attention (DeepSeek-V3.2-Exp, arXiv 2512.02556): attention
    goes to the `kept` best tokens alone. `interleaved`: as its own rotary pairs are."""

    heads: int
    size: int
    kept: int
    interleaved: bool


@dataclass(frozen=True, slots=True)
class Experts:
    """A mixture of experts and how tokens find them.

    `score`: softmax over all experts, or sigmoid of each. `groups` > 1 limits the choice to the
    experts of the best `top_groups` groups; a group's worth is its best expert (`max`) or the sum
    of its two best (`top2`). `correction`: a bias that steers the choice but not the weight
    (DeepSeek-V3, arXiv 2412.19437, section 2.1.2). `shared` is the width of the always-on expert,
    `latent` that of what experts read and write where it is not the hidden one (0).
    """

    count: int
    per_token: int
    width: int
    shared: int = 0
    score: Literal["softmax", "sigmoid"] = "softmax"
    normalize: bool = True
    scaling: float = 1.0
    groups: int = 1
    top_groups: int = 1
    group_score: Literal["max", "top2"] = "max"
    correction: bool = False
    shared_gate: bool = False  # the always-on expert times a sigmoid of its own (Qwen3-Next)
    bias: bool = False  # of the router and of each expert's projections (gpt-oss)
    latent: int = 0
    # As checkpoints have them; `beside`: a dense feed-forward, both behind norms of their own.
    names: Literal["mlp", "block_sparse_moe", "stacked", "mixer", "beside"] = "mlp"


Half = Literal["mixer", "feed"]
StreamFault = Literal[
    "none", "one_prefix", "one_cache", "uniform", "undiscounted", "summed", "in_turn", "copied"
]


@dataclass(frozen=True, slots=True)
class Streams:
    """Parallel streams (ParScale, arXiv 2505.10475): how many passes a token gets, tokens of each
    one's prefix in every layer, and the least share of the mixture all have together."""

    count: int
    prefix: int
    smoothing: float = 0.1
    fault: StreamFault = "none"  # what goes wrong


@dataclass(frozen=True, slots=True)
class LayerInputs:
    """What each layer is told of a token besides what the ones before it found (Gemma-4): an
    embedding of `size` numbers for each layer, of a vocabulary of its own."""

    vocab: int
    size: int


@dataclass(frozen=True, slots=True)
class ModelConfig:
    """One model's architecture. Widths in numbers, not bytes; a window of 0 means unlimited."""

    architecture: str  # as in config.json, such as LlamaForCausalLM
    family: str  # model_type, such as llama
    vocab: int
    hidden: int
    layers: int
    heads: int
    kv_heads: int
    head_dim: int
    width: int  # of the dense feed-forward
    max_positions: int
    norm_eps: float
    attention_scale: float
    windows: tuple[int, ...]
    expert_layers: tuple[bool, ...]  # which layers route to experts instead of the dense one
    rotary: Rotary | None = None  # None: learned positions
    local_rotary: Rotary | None = None  # of layers with a window, where theirs is another (Gemma-3)
    turned: tuple[bool, ...] = ()  # which layers rotate at all (SmolLM3); empty: all
    latent: Latent | None = None
    index: Index | None = None
    recurrence: Delta | Mamba | None = None
    recurrent: tuple[bool, ...] = ()  # which layers keep a state in place of keys and values
    halves: tuple[Half, ...] = ()  # which half of a layer each one is (Nemotron-H); empty: both
    wide_heads: tuple[int, int] | None = None  # key/value heads and head size without a window
    key_is_value: bool = False  # in those layers the key is the value, too
    value_norm: bool = False  # values of each head normed, without a weight (Gemma-4)
    sources: tuple[int, ...] = ()  # whose keys and values each layer reads; empty: its own
    widths: tuple[int, ...] = ()  # of each layer's feed-forward; empty: `width`
    layer_inputs: LayerInputs | None = None
    layer_scale: bool = False  # what a layer has done, times a number of its own (Gemma-4)
    query_gate: bool = False  # attention's output times a sigmoid of its input (Qwen3-Next)
    experts: Experts | None = None
    tied: bool = False  # the output head is the embedding
    activation: Activation = "silu"
    gated: bool = True  # down(act(gate) * up), else down(act(up))
    norm: Literal["rms", "layer"] = "rms"
    norm_offset: float = 0.0  # added to the norm's weight (Gemma stores weight - 1)
    pre_norm: bool = True  # norms before attention and feed-forward (not: OLMo-2, EXAONE-4)
    sandwich: bool = False  # norms after attention and feed-forward (too: Gemma-2)
    qk_norm: bool = False  # RMS norm of each query and key head (Qwen3)
    qk_norm_whole: bool = False  # and that over all heads at once (OLMo-2)
    qkv_bias: bool = False
    out_bias: bool = False
    mlp_bias: bool = False
    paths: int = 0  # embeddings of paths, added to keys and values (ParaThinker)
    streams: Streams | None = None  # passes of each token, told apart by prefixes (ParScale)
    duo: Duo | None = None  # a small feed-forward beside each layer's (Duo-LLM)
    embedding_scale: float = 1.0
    residual_scale: float = 1.0  # of what a half of a layer adds (Granite)
    logit_scale: float = 1.0  # of the logits, before their cap (Granite)
    one_projection: bool = False  # queries, keys, values as one tensor, gate and up too (Phi-3)
    sinks: bool = False  # a logit of each head that nothing has, beside its scores (gpt-oss)
    glu_limit: float = 0.0  # act(gate) * up with both clamped and up + 1 (gpt-oss); 0: plain
    glu_gain: float = 1.0  # and the gate inside its sigmoid multiplied by this
    attention_softcap: float = 0.0  # 0: none
    logit_softcap: float = 0.0  # 0: none
    scale_by_layer: bool = False  # attention scale divided by layer + 1 (a GPT-2 option)
    dtype: str = "float32"  # of the checkpoint, where it says
    bos: tuple[int, ...] = ()
    eos: tuple[int, ...] = ()
    mask: tuple[int, ...] = ()  # of a masked-diffusion model the token of places not yet written
    raw: dict[str, Any] = field(default_factory=dict, compare=False, repr=False)

    @property
    def norms(self) -> int:
        """Norms of vectors of the hidden width in a layer."""
        return 4 if self.sandwich and self.pre_norm else 2

    @property
    def sees_both_ways(self) -> bool:
        """Whether a token may attend to all of its text: no layer keeps a state or looks back."""
        one_way = any(self.recurrent) or any(self.windows) or self.index is not None
        return not (one_way or self.streams is not None or self.halves)

    @property
    def fed_twice(self) -> bool:
        """Whether a layer's experts stand beside its dense feed-forward, not in its place."""
        return self.experts is not None and self.experts.names == "beside"

    @property
    def unusual(self) -> str:
        """What only the model itself and its reference know how to compute; "" for nothing."""
        rotated = self.rotary.dim if self.rotary and self.latent is None else self.head_dim
        for what, there in (
            ("layers with a recurrent state", any(self.recurrent)),
            ("layers of one half", bool(self.halves)),
            ("norms behind its layers alone", not self.pre_norm),
            ("query and key norms over all heads", self.qk_norm_whole),
            ("layers that do not rotate", not all(self.turned)),
            ("another rotation in layers with a window", self.local_rotary is not None),
            ("keys and values shared by layers", bool(self.sources)),
            ("heads of two sizes", self.wide_heads is not None),
            ("normed values", self.value_norm),
            ("inputs of each layer", self.layer_inputs is not None),
            ("heads rotated in part", rotated != self.head_dim),
            ("scaled residuals or logits", (self.residual_scale, self.logit_scale) != (1.0, 1.0)),
            ("head norms with an offset", self.qk_norm and self.norm_offset != 0.0),
            ("gated attention", self.query_gate),
            ("attention that an index thins out", self.index is not None),
            ("gated shared experts", bool(self.experts and self.experts.shared_gate)),
            ("experts beside a feed-forward", self.fed_twice),
            ("projections stored as one", self.one_projection),
            ("attention sinks", self.sinks),
            ("clamped experts", self.glu_limit != 0.0),
            ("parallel streams", self.streams is not None),
            ("two feed-forwards in each layer", self.duo is not None),
        ):
            if there:
                return what
        return ""

    def usual(self, who: str) -> "ModelConfig":
        """Itself; raises BadInput where `who` would not compute it right."""
        if self.unusual:
            raise BadInput(f"model {self.architecture}: has {self.unusual}; {who} does not know it")
        return self

    @property
    def attending(self) -> int:
        """Layers that attend to keys and values."""
        return sum(map(self.attends, range(self.layers)))

    def attends(self, layer: int) -> bool:
        """Whether a layer keeps keys and values."""
        return self.mixes(layer) and not self.keeps_state(layer)

    def source(self, layer: int) -> int:
        """Whose keys and values a layer reads."""
        return self.sources[layer] if self.sources else layer

    def at(self, layer: int) -> "ModelConfig":
        """As one layer has it, where they differ in heads, rotation or width."""
        return _at(self, layer) if self.wide_heads or self.widths else self

    def mixes(self, layer: int) -> bool:
        """Whether a layer looks at other tokens, by attention or by a state."""
        return not self.halves or self.halves[layer] == "mixer"

    def feeds(self, layer: int) -> bool:
        """Whether a layer has a feed-forward or experts."""
        return not self.halves or self.halves[layer] == "feed"

    def keeps_state(self, layer: int) -> bool:
        """Whether a layer keeps a recurrent state in place of keys and values."""
        return bool(self.recurrent) and self.recurrent[layer]

    def rotation(self, layer: int) -> Literal["main", "local", "none"]:
        """Which rotation a layer's queries and keys get."""
        if self.rotary is None or (self.turned and not self.turned[layer]):
            return "none"
        return "local" if self.local_rotary is not None and self.windows[layer] else "main"

    def scale(self, layer: int) -> float:
        """What attention scores of this layer are multiplied by."""
        return self.attention_scale / (layer + 1) if self.scale_by_layer else self.attention_scale


@lru_cache(maxsize=256)
def _at(config: ModelConfig, layer: int) -> ModelConfig:
    window, told = config.windows[layer], dict[str, Any]()
    if config.widths:
        told["width"] = config.widths[layer]
    if window and config.local_rotary is not None:
        told["rotary"] = config.local_rotary
    if window:
        told["key_is_value"] = False
    elif config.wide_heads is not None:
        told["kv_heads"], told["head_dim"] = config.wide_heads
    return replace(config, **told)
