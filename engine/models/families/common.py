"""Fields most families spell alike: widths, positions, windows."""

from typing import Any

from engine.models.config import Activation, Rotary, Streams
from engine.models.duo.shape import Duo
from engine.models.families.fields import LEAST, MOST_LAYERS, Fields
from engine.models.families.rope_fields import read_rotary

ACTIVATIONS: dict[str, Activation] = {
    "silu": "silu",
    "swish": "silu",
    "gelu": "gelu",
    "gelu_new": "gelu_tanh",
    "gelu_pytorch_tanh": "gelu_tanh",
    "relu": "relu",
    "relu2": "relu2",
}
MOST_STREAMS = 64
DTYPES = ("float32", "float16", "bfloat16", "float64")


def common_fields(fields: Fields, **own: Any) -> dict[str, Any]:
    """What all families but GPT-2 spell alike."""
    layers = fields.count("num_hidden_layers", high=MOST_LAYERS)
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
        "norm_eps": fields.number("rms_norm_eps", 1e-6, low=LEAST),
        "attention_scale": head_dim**-0.5,
        "windows": (0,) * layers,
        "expert_layers": (False,) * layers,
        "rotary": own["rotary"] if "rotary" in own else read_rotary(fields, head_dim),
        "tied": fields.flag("tie_word_embeddings"),
        "activation": fields.choice("hidden_act", "silu", ACTIVATIONS),
        "dtype": dtype if dtype in DTYPES else "float32",
        "bos": fields.tokens("bos_token_id"),
        "eos": fields.tokens("eos_token_id"),
        "mask": fields.tokens("mask_token_id"),
    } | own


def window_size(fields: Fields) -> int:
    """The sliding window; absent, null or 0 means none."""
    return fields.count("sliding_window", 0, low=0)


def windows_every(
    fields: Fields, layers: int, window: int, every: int
) -> tuple[int, ...]:  # fmt: skip
    """Each layer's window: as `layer_types` says, or on all but each `every`-th layer."""
    kinds = fields.raw.get("layer_types")
    if kinds is not None:
        return windows_by_type(fields, kinds, layers, window)
    return tuple(0 if every and (layer + 1) % every == 0 else window for layer in range(layers))


def local_rotary(fields: Fields, dim: int, main: Rotary, theta: float) -> Rotary | None:
    """What layers with a window rotate by; None where it is what the others do.

    `theta`: of a config that has no settings by kind of layer; stretching is the others' alone.
    """
    told = fields.inner("rope_parameters")
    by_kind = told is not None and told.has("sliding_attention")
    found = read_rotary(fields, dim, layers="sliding_attention") if by_kind else Rotary(dim, theta)
    return None if found == main else found


def windows_by_type(fields: Fields, kinds: Any, layers: int, window: int) -> tuple[int, ...]:
    """Each layer's window from the list of layer types newer configs carry."""
    known = {"sliding_attention": window, "full_attention": 0}
    right = isinstance(kinds, list) and all(isinstance(k, str) and k in known for k in kinds)
    if not right or len(kinds) != layers:
        raise fields.bad(
            "layer_types", f"must list sliding_attention or full_attention for {layers} layers"
        )
    return tuple(known[kind] for kind in kinds)


def streams_of(fields: Fields) -> Streams | None:
    """Parallel streams as ParScale's checkpoints say them; one without a prefix is none."""
    count = fields.count("parscale_n", 1, high=MOST_STREAMS)
    prefix = fields.count("parscale_n_tokens", 0, low=0) if fields.has("parscale_n") else 0
    smoothing = fields.number("parscale_attn_smooth", 0.01)
    if smoothing > 1.0:
        raise fields.bad("parscale_attn_smooth", f"is {smoothing}; it must not be above 1")
    return Streams(count, prefix, smoothing) if count > 1 else None


def duo_of(fields: Fields) -> Duo | None:
    """A small feed-forward beside each layer's own; names of ours, as nobody released any."""
    if not fields.has("duo_small_size"):
        return None
    layers = fields.count("num_hidden_layers", high=MOST_LAYERS)
    return Duo(fields.count("duo_small_size"), fields.count("duo_big_layers", 1, 0, layers))
