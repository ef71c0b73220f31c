"""GGUF checkpoint: a file's weights under their Hugging Face names, read when asked for."""

import math
import re
from collections.abc import Iterator, Mapping

import numpy as np
from torch import Tensor

from engine.core.errors import BadInput
from engine.kernels.quantised.weight import Quantised
from engine.models.config import ModelConfig
from engine.models.gguf import blocks
from engine.models.gguf.header import Blocks, Header
from engine.models.parameters import all_parameters
from engine.models.tensors.reading import Reading

OUTER = {
    "model.embed_tokens": "token_embd",
    "model.norm": "output_norm",
    "lm_head": "output",
}
LAYER = {
    "input_layernorm": "attn_norm",
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "self_attn.q_norm": "attn_q_norm",
    "self_attn.k_norm": "attn_k_norm",
    "post_attention_layernorm": "ffn_norm",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
}
ROOT = "model.layers."
ROUTER = re.compile(r"(?:mlp|block_sparse_moe)\.gate")
EXPERT = re.compile(r"(?:mlp|block_sparse_moe)\.experts\.(\d+)\.(\w+)")
# All experts of a layer lie in one tensor, one behind the other.
EXPERTS = {
    "gate_proj": "ffn_gate_exps", "up_proj": "ffn_up_exps", "down_proj": "ffn_down_exps",
    "w1": "ffn_gate_exps", "w3": "ffn_up_exps", "w2": "ffn_down_exps",
}  # fmt: skip
SWAPPED = ("llama", "mixtral")  # families whose queries and keys lie in pairs of neighbours


def named(parameter: str) -> tuple[str, int | None]:
    """A Hugging Face tensor's name in a GGUF file, and which of its experts where it is one's."""
    root, _, last = parameter.rpartition(".")
    if not root.startswith(ROOT):
        return f"{OUTER.get(root, root)}.{last}", None
    layer, _, part = root.removeprefix(ROOT).partition(".")
    if (expert := EXPERT.fullmatch(part)) is not None:
        return f"blk.{layer}.{EXPERTS[expert[2]]}.{last}", int(expert[1])
    part = "ffn_gate_inp" if ROUTER.fullmatch(part) else LAYER.get(part, part)
    return f"blk.{layer}.{part}.{last}", None


class GGUFCheckpoint(Mapping[str, Tensor]):
    """Tensors by the names `config` expects, as numbers, or as the codes the file holds."""

    def __init__(self, header: Header, config: ModelConfig) -> None:
        self.stored: dict[str, Blocks] = {}
        for parameter in all_parameters(config):
            name, expert = named(parameter.name)
            found = header.tensors.get(name)
            if found is None:
                raise BadInput(f"{header.path}: tensor {name!r} is missing; give a whole model")
            if expert is not None:
                if config.experts is None or found.shape[:1] != (config.experts.count,):
                    raise BadInput(f"{header.path}: tensor {name!r} is not one of all experts")
                found = found.part(expert)
            if found.shape != parameter.shape:
                raise BadInput(
                    f"{header.path}: tensor {name!r} has shape {list(found.shape)}; "
                    f"its metadata asks for {list(parameter.shape)}"
                )
            self.stored[parameter.name] = found
        # Of these alone, queries and keys lie with each head's pairs beside each other.
        heads = {"q_proj": config.heads, "k_proj": config.kv_heads}
        self.heads = heads if config.family in SWAPPED else {}
        self.reading = Reading(str(header.path), sum(each.bytes for each in self.stored.values()))

    def __getitem__(self, name: str) -> Tensor:
        tensor = blocks.numbers(self.stored[name])
        self.reading.took(self.stored[name].bytes)
        order = self._order(name)
        return tensor if order is None else tensor[order]

    def codes(self, name: str) -> Quantised | None:
        """The tensor as codes and scales; None where it is plain numbers."""
        found, order = blocks.codes(self.stored[name]), self._order(name)
        if found is not None:
            self.reading.took(self.stored[name].bytes)
        return found if found is None or order is None else found.rows(order)

    def _order(self, name: str) -> np.ndarray | None:
        """The rows of a head's first halves, then of its second; None where they lie so."""
        count = self.heads.get(name.split(".")[-2])
        if count is None:
            return None
        rows = np.arange(self.stored[name].shape[0]).reshape(count, -1, 2)
        return rows.swapaxes(1, 2).reshape(-1)

    def bytes(self, width: int) -> int:
        """Bytes of the model in memory, the table of the tokens' rows `width` bytes a number."""
        table = self.stored["model.embed_tokens.weight"]
        packed = 5 * sum(each.bytes for each in self.stored.values()) // 4
        return packed + math.prod(table.shape) * width

    @property
    def holds_codes(self) -> bool:
        """Whether a tensor is quantised."""
        return any(each.kind in blocks.READERS for each in self.stored.values())

    def __iter__(self) -> Iterator[str]:
        return iter(self.stored)

    def __len__(self) -> int:
        return len(self.stored)
