"""Attention weights of a whole sequence, computed again: queries and keys of all layers, and from
them any block of any head.

Shape letters: N tokens, T new tokens, H query heads, G key/value heads, D head size, R rows and
C columns of a block (queries and keys).
"""

from collections.abc import Callable
from copy import copy
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import torch
from torch import Tensor

from engine.core.errors import BadInput
from engine.core.memory import require
from engine.models.batch import pack
from engine.models.config import ModelConfig
from engine.models.footprint import active_parameter_count
from engine.models.kv import PagedKV
from engine.models.layers import softcap
from engine.models.model import Block, HalfBlock, Model
from engine.models.recurrent_layer import Recurrent

PAGE, CHUNK = 16, 256  # tokens of a page, and computed at once
ROWS = 256  # queries whose scores are held at once
TOKENS = 1 << 15  # of a sequence, at most
BYTES = 1 << 30  # of queries and keys, at most
FLOPS = 4e12  # of computing them, at most: a minute or two of a processor
ADVICE = "look at a shorter request, or one of a smaller model"

Tell = Callable[[int, int], None]  # tokens done, of how many


@dataclass(slots=True)
class _Layer:
    """What one layer's attention was asked."""

    q_NHD: Tensor
    k_NGD: Tensor
    scale: float
    window: int
    softcap: float
    sinks_H: Tensor | None


def check_price(config: ModelConfig, tokens: int) -> None:
    """Raises BadInput where a sequence of so many tokens is too dear to be looked at."""
    if not 0 < tokens <= TOKENS:
        raise BadInput(f"attention: {tokens:,} tokens; 1 to {TOKENS:,} can be looked at: {ADVICE}")
    if config.max_positions and tokens > config.max_positions:
        raise BadInput(
            f"attention: {tokens:,} tokens, and the model knows {config.max_positions:,} positions"
        )
    if any(config.recurrent) or config.index is not None:
        raise BadInput(
            f"attention: {config.architecture} has {config.unusual}; it is not looked at"
        )
    wide = config.latent.rank + config.latent.rope if config.latent else config.head_dim
    heads = config.heads + (1 if config.latent else config.kv_heads)
    held = 4.0 * config.layers * tokens * heads * wide
    work = 2.0 * active_parameter_count(config) * tokens
    work += 2.0 * config.layers * config.heads * wide * tokens**2
    if held > BYTES or work > FLOPS:
        raise BadInput(
            f"attention: {tokens:,} tokens take {held / 2**30:.1f} GiB and {work / 1e12:.1f} "
            f"Tflop; at most {BYTES / 2**30:.0f} GiB and {FLOPS / 1e12:.0f} Tflop: {ADVICE}"
        )
    require(2 * held, f"attention of {tokens:,} tokens", ADVICE)


class SequenceAttention:
    """One sequence through a model once more, keeping what attention was asked in each layer.

    In plain torch, on a model of its own: an engine that runs the same weights is left alone.
    """

    def __init__(
        self, model: Model, tokens_N: np.ndarray, tell: Tell = lambda done, of: None
    ) -> None:
        """Raises BadInput for a sequence that is too long or too dear."""
        check_price(model.config, len(tokens_N))
        if model.compiled:
            named = str(model.dtype).removeprefix("torch.")
            model = Model(model.config, model.weights, named, device=model.device, plain=True)
        self.tokens = len(tokens_N)
        self.layers, self.heads = model.config.layers, model.config.heads
        self._asked: list[list[_Layer]] = [[] for _ in range(self.layers)]
        blocks = [self._listening(block, layer) for layer, block in enumerate(model.blocks)]
        pages = -(-self.tokens // PAGE)
        kv = PagedKV(model.spec, pages, PAGE, model.device)
        with torch.inference_mode():
            for start in range(0, self.tokens, CHUNK):
                chunk = tokens_N[start : start + CHUNK].tolist()
                self._pass(model, blocks, kv, chunk, start)
                tell(min(start + CHUNK, self.tokens), self.tokens)
            self.asked = [self._joined(parts) for parts in self._asked]
        self._asked = []

    def _pass(
        self, model: Model, blocks: list[Block], kv: PagedKV, chunk: list[int], start: int
    ) -> None:
        batch = pack([chunk], [start], [list(range(kv.pages))], PAGE)
        here, x_TC = model.shared(batch), model.embed(batch)
        for block, cache in zip(blocks, model.pages(kv), strict=True):
            x_TC = block(x_TC, here, cache)

    def _listening(self, block: Block | HalfBlock, layer: int) -> Block:
        """The block, telling what its attention is asked."""
        assert isinstance(block, Block)
        made, made.attention = copy(block), copy(block.attention)
        assert not isinstance(made.attention, Recurrent)
        op = made.attention.ops.paged_attention
        made.attention.ops = replace(
            made.attention.ops, paged_attention=partial(self._listen, layer, op)
        )
        return made

    def _listen(
        self, layer: int, op: Callable[..., Tensor], q_THD: Tensor, k_PSGD: Tensor,
        *others: object, scale: float, window: int = 0, softcap: float = 0.0,
        sinks_H: Tensor | None = None,
    ) -> Tensor:  # fmt: skip
        parts = self._asked[layer]
        parts.append(_Layer(q_THD.clone(), k_PSGD, scale, window, softcap, sinks_H))
        rest = {} if sinks_H is None else {"sinks_H": sinks_H}
        return op(q_THD, k_PSGD, *others, scale=scale, window=window, softcap=softcap, **rest)

    def _joined(self, parts: list[_Layer]) -> _Layer:
        """All chunks of a layer as one; its keys in the order of positions."""
        q_NHD = torch.cat([part.q_NHD for part in parts]).float()
        k_NGD = parts[-1].k_NGD.flatten(0, 1)[: self.tokens].float()
        return replace(parts[-1], q_NHD=q_NHD, k_NGD=k_NGD)

    def log_sums(self, layer: int, head: int, rows: np.ndarray) -> Tensor:
        """lse_R: the logarithm of what the softmax of each of these queries is divided by."""
        asked = self.asked[layer]
        found = []
        for part in np.array_split(rows, -(-len(rows) // ROWS)):
            lse_R = self._scores(layer, head, part, slice(0, int(part.max()) + 1)).logsumexp(-1)
            if asked.sinks_H is not None:
                lse_R = torch.logaddexp(lse_R, asked.sinks_H[head].float())
            found.append(lse_R)
        return torch.cat(found)

    def weights(
        self, layer: int, head: int, rows: np.ndarray, columns: slice, lse_R: Tensor
    ) -> np.ndarray:
        """weights_RC float32 of these queries for these keys; 0 for keys that come later."""
        scores_RC = self._scores(layer, head, rows, columns)
        return (scores_RC - lse_R[:, None]).exp_().cpu().numpy()

    def _scores(self, layer: int, head: int, rows: np.ndarray, columns: slice) -> Tensor:
        """scores_RC, -inf where a query does not see a key."""
        asked = self.asked[layer]
        each = asked.q_NHD.shape[1] // asked.k_NGD.shape[1]
        at_R = torch.from_numpy(np.ascontiguousarray(rows, np.int64))
        q_RD = asked.q_NHD[at_R, head]
        scores_RC = softcap((q_RD @ asked.k_NGD[columns, head // each].T) * asked.scale,
                            asked.softcap)  # fmt: skip
        apart_RC = at_R[:, None] - torch.arange(columns.start, columns.start + scores_RC.shape[1])
        hidden_RC = apart_RC < 0
        if asked.window:
            hidden_RC |= apart_RC >= asked.window
        return scores_RC.masked_fill_(hidden_RC.to(scores_RC.device), float("-inf"))
