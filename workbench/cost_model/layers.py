"""The operators of a transformer's layer as shapes of the cost model, by a table's column names.

In come a model's architecture, how many devices share a layer and the tokens of a step; out come
the operator's name and what the cost model asks of it: (m, n, k), or (name, rows, width, numbers).
"""

from collections.abc import Callable
from typing import Any, TypeAlias

from engine.models.config import ModelConfig
from engine.models.loading.find import find, public

Shaped: TypeAlias = tuple[str, tuple[Any, ...]]


def model_of(name: str) -> ModelConfig | None:
    """A table's model name as a public architecture; None if it is not known."""
    stem = name.rsplit("/", 1)[-1].lower().removesuffix("-hf").removesuffix("-instruct")
    return find(stem).config if stem in public() else None


def _qkv(c: ModelConfig, tp: int, m: int) -> Shaped:
    return "matmul", (m, (c.heads + 2 * c.kv_heads) * c.head_dim // tp, c.hidden)


def _out(c: ModelConfig, tp: int, m: int) -> Shaped:
    return "matmul", (m, c.hidden, c.heads * c.head_dim // tp)


def _up(c: ModelConfig, tp: int, m: int) -> Shaped:
    return "matmul", (m, 2 * c.width // tp, c.hidden)


def _down(c: ModelConfig, tp: int, m: int) -> Shaped:
    return "matmul", (m, c.hidden, c.width // tp)


def _row(operator: str, reads: int, writes: int = 1) -> Callable[[ModelConfig, int, int], Shaped]:
    return lambda c, tp, m: (operator, (operator, m, c.hidden, (reads + writes) * c.hidden))


def _gate(c: ModelConfig, tp: int, m: int) -> Shaped:
    width = c.width // tp
    return "swiglu", ("swiglu", m, width, 3 * width)


def _turn(c: ModelConfig, tp: int, m: int) -> Shaped:
    width = (c.heads + c.kv_heads) * c.head_dim // tp
    return "rotary", ("rotary", m, width, 2 * width)


LAYER: dict[str, Callable[[ModelConfig, int, int], Shaped]] = {
    "emb": _row("embedding", 1),
    "input_layernorm": _row("norm", 1),
    "attn_pre_proj": _qkv,
    "attn_rope": _turn,
    "attn_post_proj": _out,
    "post_attention_layernorm": _row("norm", 1),
    "mlp_up_proj": _up,
    "mlp_act": _gate,
    "mlp_down_proj": _down,
    "add": _row("add", 2),
}
