"""A language model cut where its backward can be taken in pieces: layers and head of some tokens.

The parts are the dense forward's own; attention is tiled. A layer's keys and values are the only
things its tokens tell each other. Shape letters: B sequences, T tokens, P tokens of a piece,
C hidden, G key/value heads, D head size.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from engine.models.config import ModelConfig
from engine.models.layers import experts, feed_forward, linear, norm
from engine.models.parameters import layer_parameters, roles
from engine.models.reference import embed, head, keys_values, ordered, queries
from engine.training.streamed.attention import Scores, attend

Turn = tuple[Tensor, Tensor] | None
Roles = dict[str, Tensor]


@dataclass(frozen=True)
class Model:
    """`weights` by Hugging Face name, leaves whose gradients gather in `.grad`; `tile`: tokens."""

    config: ModelConfig
    weights: Mapping[str, Tensor]
    tile: int = 256

    def embed(self, ids_BT: Tensor) -> Tensor:
        """x_BTC before the first layer."""
        return embed(self.config.usual("streamed training"), self.weights, ids_BT)

    def turn(self, x_BTC: Tensor) -> Turn:
        """Cosine and sine of all positions, or None where positions are learnt."""
        return ordered(self.config, x_BTC).turn

    def roles(self, layer: int) -> Roles:
        """A layer's weights by role."""
        return roles(layer_parameters(self.config, layer), self.weights)

    def keys(self, w: Roles, x_BPC: Tensor, turn: Turn) -> tuple[Tensor, Tensor]:
        """k_BPGD and v_BPGE of these tokens."""
        return keys_values(self.config, w, norm(self.config, x_BPC, w, "attention_norm"), turn)

    def rest(self, layer: int, w: Roles, x_BPC: Tensor, k: Tensor, v: Tensor, turn: Turn) -> Tensor:
        """y_BPC of a layer for the last P tokens, given keys and values of all up to them."""
        q = queries(self.config, w, norm(self.config, x_BPC, w, "attention_norm"), turn)
        return self._finish(layer, w, x_BPC, attend(q, k, v, self._scores(layer)))

    def layer(self, layer: int, x_BTC: Tensor, turn: Turn) -> Tensor:
        """y_BTC of a layer for all tokens at once."""
        w = self.roles(layer)
        y = norm(self.config, x_BTC, w, "attention_norm")
        q = queries(self.config, w, y, turn)
        k, v = keys_values(self.config, w, y, turn)
        return self._finish(layer, w, x_BTC, attend(q, k, v, self._scores(layer)))

    def logprobs(self, x_BPC: Tensor, target_BP: Tensor) -> Tensor:
        """Each target's log-probability, lp_BP in float32 or wider."""
        logits_BPV = head(self.config, self.weights, x_BPC)
        logits_BPV = logits_BPV.to(torch.promote_types(logits_BPV.dtype, torch.float32))
        lost = F.cross_entropy(logits_BPV.flatten(0, 1), target_BP.flatten(), reduction="none")
        return -lost.view_as(target_BP)

    def _scores(self, layer: int) -> Scores:
        config = self.config
        return Scores(
            config.scale(layer), config.windows[layer], config.attention_softcap, self.tile
        )

    def _finish(self, layer: int, w: Roles, x: Tensor, o_BPHE: Tensor) -> Tensor:
        config = self.config
        y = linear(w, "out", o_BPHE.flatten(-2))
        x = x + (norm(config, y, w, "attention_post_norm") if config.sandwich else y)
        feed = experts if config.expert_layers[layer] else feed_forward
        y = feed(config, w, norm(config, x, w, "mlp_norm"))
        return x + (norm(config, y, w, "mlp_post_norm") if config.sandwich else y)


def part(turn: Turn, piece: range) -> Turn:
    """Cosine and sine of a piece."""
    if turn is None:
        return None
    cos, sin = turn
    return cos[:, piece.start : piece.stop], sin[:, piece.start : piece.stop]


def pieces(length: int, count: int) -> list[range]:
    """`length` tokens in at most `count` runs as even as they go."""
    count = min(count, length)
    edges = [length * n // count for n in range(count + 1)]
    return [range(a, b) for a, b in zip(edges, edges[1:], strict=False)]


def met(ranges: list[range], like: Tensor) -> list[range]:
    """The pieces to go through; on shapes alone the last, the largest one that sees most, stands
    for all: each gives back what it takes."""
    return ranges[-1:] if like.is_meta else ranges
