"""Operator profiles in LLMServingSim's layout, as rows of measured operators.

Which device, model, dtype and split a table is of stands in its path or in a note that names where
it is from: `…/perf/DEVICE/MODEL/bf16/tp1/dense.csv`.
"""

import re
from collections.abc import Iterator

from engine.core.errors import BadInput
from engine.models.config import ModelConfig
from workbench.cost_model.layers import LAYER, model_of
from workbench.cost_model.rows import Cells, Found, LeftOut, Measured, dtype_of, not_covered

ORIGIN = re.compile(r"perf/(?P<device>[^/\s]+)/(?P<model>\S+)/(?P<dtype>\w+)/tp(?P<tp>\d+)/")
NAMES = {
    "embedding": "emb",
    "layernorm": "input_layernorm",
    "final_layernorm": "input_layernorm",
    "qkv_proj": "attn_pre_proj",
    "rotary_emb": "attn_rope",
    "o_proj": "attn_post_proj",
    "gate_up_proj": "mlp_up_proj",
    "act_fn": "mlp_act",
    "down_proj": "mlp_down_proj",
}


class _Of:
    """What a table is of, and why it is not covered, if so."""

    def __init__(self, cells: Cells) -> None:
        told = ORIGIN.search(cells.origin)
        if told is None:
            raise BadInput(
                f"{cells.where}: of which device and model? Note # …/perf/DEVICE/MODEL/bf16/tp1/…"
            )
        cells.line |= {"origin": told["device"]}
        self.cells, self.name, self.tp = cells, told["model"], int(told["tp"])
        self.dtype, self.device = dtype_of(told["dtype"]), told["device"]
        self.config = model_of(self.name)
        self.sheet, self.gone = not_covered(cells, "origin", self.dtype)
        if self.gone is None and self.config is None:
            self.gone = LeftOut(cells.where, f"model {self.name!r} is not in the dataset")

    def row(self, operator: str, shape: tuple[object, ...], group: str) -> Found:
        seconds = self.cells.time("time_us", 1e-6)
        group = f"profile {self.name} tp={self.tp} {group}"
        return self.gone or Measured(operator, self.sheet, (*shape, self.dtype), seconds, group)


def by_tokens(cells: Cells) -> Iterator[Found]:
    """A layer's operators by tokens."""
    of, layer, tokens = _Of(cells), cells.text("layer"), cells.count("tokens")
    if of.gone or layer not in NAMES:
        yield of.gone or LeftOut(cells.where, f"layer {layer!r}: none of the model's operators")
        return
    assert of.config is not None
    operator, shape = LAYER[NAMES[layer]](of.config, of.tp, tokens)
    yield of.row(operator, shape, layer)


def by_sequences(cells: Cells) -> Iterator[Found]:
    """Operators that go by sequences: the head is one that the model covers."""
    of, layer, rows = _Of(cells), cells.text("layer"), cells.count("sequences")
    if of.gone or layer != "lm_head":
        yield of.gone or LeftOut(cells.where, f"layer {layer!r}: none of the model's operators")
        return
    assert of.config is not None
    yield of.row("matmul", (rows, of.config.vocab // of.tp, of.config.hidden), layer)


def attention(cells: Cells) -> Iterator[Found]:
    """Calls of attention: a chunk of a prompt, answers, or both."""
    of = _Of(cells)
    names = ("prefill_chunk", "kv_prefill", "n_decode", "kv_decode")
    chunk, cached, ones, context = (cells.count(name, 0) for name in names)
    if of.gone or of.config is None or not chunk + ones:
        yield of.gone or LeftOut(cells.where, "a call of nothing")
        return
    heads, kv_heads, dim = _heads(of.config, of.tp)
    if not chunk:
        yield of.row("decode", (ones, context + 1, kv_heads, dim), f"decode {ones}")
    elif not ones:
        shape = (1, chunk, heads, kv_heads, dim)
        if cached:
            yield of.row("chunk", (*shape, cached), f"chunk {cached}")
        else:
            yield of.row("prefill", shape, "prefill")
    else:
        shape = (1, chunk, cached, ones, context + 1, heads, kv_heads, dim)
        yield of.row("mixed", shape, f"mixed {ones}")


def _heads(config: ModelConfig, tp: int) -> tuple[int, int, int]:
    return config.heads // tp, max(1, config.kv_heads // tp), config.head_dim
