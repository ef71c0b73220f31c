"""The truth about views: logits of every token ever written, computed from scratch without a cache.

In come the tokens, who wrote each, and what its writer saw at that moment (`Record`); every key is
turned to the position at which each reader sees it, once for each reader. No block, page, partial
result or turned query is involved. Shape letters: N tokens, C hidden, H query heads, G key/value
heads, D head size, V vocabulary, L visible tokens.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from engine.models.config import ModelConfig
from engine.models.layers import norm, rms_norm, softcap
from engine.models.parameters import layer_parameters, outer_parameters, roles
from engine.models.reference import experts, feed_forward, linear
from engine.models.rotary import cos_sin, frequencies, rotate
from engine.models.views import require_views

Sight = tuple[str, int, int]  # block, where it begins in the view, how many tokens are visible


@dataclass(slots=True)
class Record:
    """All tokens in the order they were written, and what each one's writer saw."""

    tokens: list[int] = field(default_factory=list)
    blocks: list[str] = field(default_factory=list)  # which block each lies in
    index: list[int] = field(default_factory=list)  # and where in it
    views: list[tuple[Sight, ...]] = field(default_factory=list)  # of its writer, at that moment

    def add(self, tokens: list[int], block: str, first: int, view: tuple[Sight, ...]) -> None:
        """`tokens` were written to `block` from index `first` on by someone who saw `view`."""
        self.tokens += tokens
        self.blocks += [block] * len(tokens)
        self.index += range(first, first + len(tokens))
        self.views += [view] * len(tokens)

    def places(self) -> np.ndarray:
        """place_NN: the position at which the writer of token i saw token j; -1 where it did not.

        A token is seen if its block is in view, within the visible count, at no later position.
        """
        block_N, index_N = np.array(self.blocks), np.array(self.index)
        place_NN = np.full((len(self.tokens), len(self.tokens)), -1, np.int64)
        for i, view in enumerate(self.views):
            begins = {block: begin for block, begin, _ in view}
            own = begins[self.blocks[i]] + self.index[i]
            for block, begin, seen in view:
                here_N = (block_N == block) & (index_N < seen) & (begin + index_N <= own)
                place_NN[i, here_N] = begin + index_N[here_N]
        return place_NN


@torch.inference_mode()
def logits(config: ModelConfig, weights: Mapping[str, Tensor], record: Record) -> Tensor:
    """logits_NV after each token of the record, in the weights' type."""
    require_views(config)
    outer = roles(outer_parameters(config), weights)
    x_NC = F.embedding(torch.tensor(record.tokens), outer["embedding"])
    if config.embedding_scale != 1.0:
        x_NC = x_NC * torch.tensor(config.embedding_scale, dtype=x_NC.dtype)
    place_NN = torch.from_numpy(record.places())
    for layer in range(config.layers):
        w = roles(layer_parameters(config, layer), weights)
        y_NC = _attention(config, layer, w, norm(config, x_NC, w, "attention_norm"), place_NN)
        x_NC = x_NC + (norm(config, y_NC, w, "attention_post_norm") if config.sandwich else y_NC)
        feed = experts if config.expert_layers[layer] else feed_forward
        y_NC = feed(config, w, norm(config, x_NC, w, "mlp_norm"))
        x_NC = x_NC + (norm(config, y_NC, w, "mlp_post_norm") if config.sandwich else y_NC)
    x_NC = norm(config, x_NC, outer, "norm")
    return softcap(F.linear(x_NC, outer.get("head", outer["embedding"])), config.logit_softcap)


def _attention(
    config: ModelConfig, layer: int, w: dict[str, Tensor], x_NC: Tensor, place_NN: Tensor
) -> Tensor:
    """Each token attends to what its writer saw, keys turned to where its writer saw them."""
    q, k, v = (
        linear(w, role, x_NC).unflatten(-1, (-1, config.head_dim))
        for role in ("query", "key", "value")
    )
    if config.qk_norm:
        q = rms_norm(q, w["query_norm"], config.norm_eps)
        k = rms_norm(k, w["key_norm"], config.norm_eps)
    rotary, share, window = config.rotary, config.heads // config.kv_heads, config.windows[layer]
    assert rotary is not None
    turns = cos_sin(rotary, frequencies(rotary), torch.arange(int(place_NN.max()) + 1), q.dtype)
    out = torch.empty_like(q)
    for i in range(len(q)):
        own = int(place_NN[i, i])
        seen_L = (place_NN[i] >= 0).nonzero()[:, 0]
        if window:
            seen_L = seen_L[own - place_NN[i, seen_L] < window]
        at_L = place_NN[i, seen_L]
        turned_LGD = rotate(k[seen_L], turns[0][at_L], turns[1][at_L], rotary.interleaved)
        cos, sin = (turn[own : own + 1] for turn in turns)
        q_HD = rotate(q[i : i + 1], cos, sin, rotary.interleaved)[0]
        keys, values = (t.repeat_interleave(share, dim=1) for t in (turned_LGD, v[seen_L]))
        scores_HL = torch.einsum("hd,lhd->hl", q_HD, keys) * config.scale(layer)
        weights_HL = softcap(scores_HL, config.attention_softcap).softmax(-1)
        out[i] = torch.einsum("hl,lhd->hd", weights_HL, values)
    return linear(w, "out", out.flatten(1))
