"""The truth about views: logits of every token written, computed from scratch without a cache.

In come the tokens, who wrote each, and what its writer saw at that moment (`Record`); every key is
turned to the position at which each reader sees it, once for each reader. No block, page, partial
result or turned query is involved. Shape letters: N tokens, C hidden, H query heads, G key/value
heads, D head size, V vocabulary, Q of the N tokens, S = H / G,
L visible tokens.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from engine.models.config import ModelConfig
from engine.models.layers import experts, feed_forward, linear, norm, rms_norm, softcap
from engine.models.parameters import layer_parameters, outer_parameters, roles
from engine.models.rotary import cos_sin, frequencies, rotate
from engine.models.view_attention import require_views

TOGETHER = 64  # queries computed at once
Sight = tuple[str, int, int]  # block, where it begins in the view, how many tokens are visible


class Seen(NamedTuple):
    """What each token's writer saw: tokens `token[first[i] : first[i + 1]]`, at `place[…]`.

    `own` [N] is the position at which it saw the token itself. A token can be seen twice.
    """

    first: np.ndarray
    token: np.ndarray
    place: np.ndarray
    own: np.ndarray


@dataclass(slots=True)
class Record:
    """All tokens in the order they were written, and what each one's writer saw."""

    tokens: list[int] = field(default_factory=list)
    rows: dict[str, list[int]] = field(default_factory=dict)  # block -> its tokens, by number
    written: list[tuple[str, int]] = field(default_factory=list)  # block and index in it
    views: list[tuple[Sight, ...]] = field(default_factory=list)  # of its writer, at that moment

    def add(self, tokens: Sequence[int], block: str, view: tuple[Sight, ...]) -> None:
        """`tokens` were appended to `block` by someone who saw `view`."""
        row = self.rows.setdefault(block, [])
        for token in tokens:
            self.written.append((block, len(row)))
            row.append(len(self.tokens))
            self.tokens.append(token)
            self.views.append(view)

    def fork(self, block: str, source: str, length: int) -> None:
        """`block` begins as the first `length` tokens of `source`."""
        self.rows[block] = self.rows.get(source, [])[:length]

    def seen(self) -> Seen:
        """A token is seen if it lies in a block in view, within the visible count, no later."""
        first, own = [0], []
        token: list[int] = []
        place: list[int] = []
        for (block, index), view in zip(self.written, self.views, strict=True):
            here = {name: begin for name, begin, _ in view}[block] + index
            for name, begin, count in view:
                kept = self.rows[name][: min(count, here + 1 - begin)] if begin <= here else []
                token += kept
                place += range(begin, begin + len(kept))
            first.append(len(token))
            own.append(here)
        return Seen(*(np.array(column, np.int64) for column in (first, token, place, own)))


@torch.inference_mode()
def logits(
    config: ModelConfig, weights: Mapping[str, Tensor], tokens: Sequence[int], seen: Seen
) -> Tensor:
    """logits_NV after each token, in the weights' type."""
    require_views(config)
    outer = roles(outer_parameters(config), weights)
    x_NC = F.embedding(torch.tensor(list(tokens)), outer["embedding"])
    if config.embedding_scale != 1.0:
        x_NC = x_NC * torch.tensor(config.embedding_scale, dtype=x_NC.dtype)
    for layer in range(config.layers):
        w = roles(layer_parameters(config, layer), weights)
        y_NC = _attention(config, layer, w, norm(config, x_NC, w, "attention_norm"), seen)
        x_NC = x_NC + (norm(config, y_NC, w, "attention_post_norm") if config.sandwich else y_NC)
        feed = experts if config.expert_layers[layer] else feed_forward
        y_NC = feed(config, w, norm(config, x_NC, w, "mlp_norm"))
        x_NC = x_NC + (norm(config, y_NC, w, "mlp_post_norm") if config.sandwich else y_NC)
    x_NC = norm(config, x_NC, outer, "norm")
    return softcap(F.linear(x_NC, outer.get("head", outer["embedding"])), config.logit_softcap)


def _attention(
    config: ModelConfig, layer: int, w: dict[str, Tensor], x_NC: Tensor, seen: Seen
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
    turns = cos_sin(rotary, frequencies(rotary), torch.arange(int(seen.place.max()) + 1), q.dtype)
    own_N = torch.from_numpy(seen.own)
    q = rotate(q, turns[0][own_N], turns[1][own_N], rotary.interleaved)
    out = torch.empty_like(q)
    for start in range(0, len(q), TOGETHER):
        part = slice(start, start + TOGETHER)
        token_QL, place_QL = _rows(seen, start, min(start + TOGETHER, len(q)))
        hidden_QL = place_QL < 0
        if window:
            hidden_QL |= own_N[part, None] - place_QL >= window
        at = place_QL.clamp(min=0).flatten()
        k_LGD = rotate(k[token_QL.flatten()], turns[0][at], turns[1][at], rotary.interleaved)
        k_QLGD, q_QGSD = (
            k_LGD.view(*token_QL.shape, *k.shape[1:]),
            q[part].unflatten(1, (-1, share)),
        )
        scores_QGSL = torch.einsum("qgsd,qlgd->qgsl", q_QGSD, k_QLGD) * config.scale(layer)
        scores_QGSL = softcap(scores_QGSL, config.attention_softcap)
        scores_QGSL = scores_QGSL.masked_fill(hidden_QL[:, None, None], float("-inf"))
        mixed_QGSD = torch.einsum("qgsl,qlgd->qgsd", scores_QGSL.softmax(-1), v[token_QL])
        out[part] = mixed_QGSD.flatten(1, 2)
    return linear(w, "out", out.flatten(1))


def _rows(seen: Seen, start: int, stop: int) -> tuple[Tensor, Tensor]:
    """Tokens seen by each of a few tokens and their places, padded with places of -1."""
    parts = [
        slice(*pair)
        for pair in zip(seen.first[start:stop], seen.first[start + 1 : stop + 1], strict=True)
    ]
    shape = len(parts), max(part.stop - part.start for part in parts)
    token, place = np.zeros(shape, np.int64), np.full(shape, -1, np.int64)
    for row, part in enumerate(parts):
        token[row, : part.stop - part.start] = seen.token[part]
        place[row, : part.stop - part.start] = seen.place[part]
    return torch.from_numpy(token), torch.from_numpy(place)
