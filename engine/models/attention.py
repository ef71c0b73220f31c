"""Attention with cached keys and values: grouped heads, windows, soft caps, norms of heads.

Shape letters: T new tokens, C hidden, H query heads, G key/value heads, D head size.
"""

from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from engine.models.batch import Batch
from engine.models.config import ModelConfig
from engine.models.duo.routes import Routes
from engine.models.gathered import Gathered
from engine.models.layers import float32_at_least
from engine.models.view_attention import ViewAttention

Turns = dict[str, tuple[Tensor, Tensor]]


@dataclass(slots=True)
class Pass:
    """What all layers of one forward pass share."""

    batch: Batch
    slots_T: Tensor  # int64, on the model's device
    turns: Turns  # cosine and sine of each token's position, by kind of rotation
    views: ViewAttention | None = None  # where sequences see more than their own pages
    paths_T: Tensor | None = None  # int64, each token's path of thought, 0 for none
    inputs_LTE: Tensor | None = None  # what each layer is told of each token besides
    routes: Routes | None = None  # where each layer has feed-forwards of two sizes
    exact: bool = False  # a token's bits are to be the same in any batch, whatever that costs

    def pages(self, cache_PSX: Tensor) -> Tensor:
        """A cache as the batch's block tables name its pages."""
        return cache_PSX.flatten(0, 1)[:, None] if self.batch.by_slot else cache_PSX


class Attention:
    """One layer's attention. Writes its new keys and values into the cache, then reads from it;
    where it shares another layer's, reads alone."""

    def __init__(self, config: ModelConfig, layer: int, weights: Gathered) -> None:
        self.ops = weights.ops
        self.writes = config.source(layer) == layer
        config = config.at(layer)
        self.qkv = weights.linear("query", "key", "value")
        self.out = weights.linear("out")
        self.query_norm = _head_norm(config, weights, "query_norm")
        self.key_norm = _head_norm(config, weights, "key_norm") if self.writes else None
        self.value_norm: Tensor | None = None
        if config.value_norm:
            self.value_norm = torch.ones(
                config.head_dim, dtype=weights.dtype, device=weights.device
            )
        self.whole = config.qk_norm_whole
        self.sinks: dict[str, Tensor] = {}  # given on only where there are any
        if config.sinks:
            self.sinks["sinks_H"] = weights.take("sinks").float()
        self.paths_PG = _paths(weights) if config.paths else None
        self.eps = config.norm_eps
        # A key that is the value, too, is computed once.
        cached = (1 if config.key_is_value else 2) if self.writes else 0
        self.heads = [config.heads] + [config.kv_heads] * cached
        self.gated = config.query_gate
        if self.gated:  # each query head is followed by its gate
            self.heads[0] *= 2
        self.head_dim = config.head_dim
        self.interleaved = bool(config.rotary and config.rotary.interleaved)
        self.rotation, self.rotated = config.rotation(layer), config.head_dim
        if config.rotary is not None:
            self.rotated = config.rotary.dim
        self.scale = config.scale(layer)
        self.window = config.windows[layer]
        self.softcap = config.attention_softcap

    def __call__(self, x_TC: Tensor, here: Pass, cache: dict[str, Tensor]) -> Tensor:
        """y_TC for normalised x_TC."""
        heads_THD = self.qkv(x_TC).unflatten(1, (-1, self.head_dim))
        q_THD, *cached = heads_THD.split(self.heads, dim=1)
        gate_THD = q_THD[:, 1::2] if self.gated else None
        q_THD = q_THD[:, ::2].contiguous() if self.gated else q_THD
        if self.query_norm is not None:
            q_THD = self._normed(q_THD, self.query_norm)
        if (turn := here.turns.get(self.rotation)) is not None:
            q_THD = self._rotate(q_THD, turn)
        k_PSGD, v_PSGD = cache["k"], cache["v"]
        if self.writes:
            k_TGD, v_TGD = self._keys_values(cached[0], cached[-1], here)
            k_PSGD.flatten(0, 1)[here.slots_T] = k_TGD.to(k_PSGD.dtype)
            v_PSGD.flatten(0, 1)[here.slots_T] = v_TGD.to(v_PSGD.dtype)
        k_PSGD, v_PSGD = here.pages(k_PSGD), here.pages(v_PSGD)
        limits: dict[str, Any] = {
            "scale": self.scale,
            "window": self.window,
            "softcap": self.softcap,
        }
        if here.views is not None:
            o_THD = here.views(q_THD, k_PSGD, v_PSGD, **limits).to(q_THD.dtype)
            return self.out(o_THD.flatten(1))
        o_THD = self.ops.paged_attention(
            q_THD,
            k_PSGD,
            v_PSGD,
            here.batch.block_table_BP,
            here.batch.query_start_B1,
            here.batch.context_B,
            **limits,
            **self.sinks,
        )
        o_THD = o_THD if gate_THD is None else o_THD * gate_THD.sigmoid()
        return self.out(o_THD.flatten(1))

    def _keys_values(self, k_TGD: Tensor, v_TGD: Tensor, here: Pass) -> tuple[Tensor, Tensor]:
        """What is cached of the new tokens."""
        if self.key_norm is not None:
            k_TGD = self._normed(k_TGD, self.key_norm)
        if self.value_norm is not None:
            v_TGD = self.ops.rms_norm(v_TGD, self.value_norm, self.eps)
        if self.paths_PG is not None and here.paths_T is not None:
            path_T2GD = self.paths_PG[here.paths_T].unflatten(1, (2, *k_TGD.shape[1:]))
            k_TGD, v_TGD = k_TGD + path_T2GD[:, 0], v_TGD + path_T2GD[:, 1]
        if (turn := here.turns.get(self.rotation)) is not None:
            k_TGD = self._rotate(k_TGD, turn)
        return k_TGD, v_TGD

    def _normed(self, x_THD: Tensor, weight: Tensor) -> Tensor:
        """Heads normed one by one, or all of a token's at once."""
        if not self.whole:
            return self.ops.rms_norm(x_THD, weight, self.eps)
        return self.ops.rms_norm(x_THD.flatten(1), weight, self.eps).view(x_THD.shape)

    def _rotate(self, x_THD: Tensor, turn: tuple[Tensor, Tensor]) -> Tensor:
        """Heads turned, where only a part of each turns their first numbers."""
        if self.rotated == self.head_dim:
            return self.ops.rotate(x_THD, *turn, self.interleaved)
        first, rest = x_THD.split([self.rotated, self.head_dim - self.rotated], dim=-1)
        return torch.cat([self.ops.rotate(first.contiguous(), *turn, self.interleaved), rest], -1)


def _head_norm(config: ModelConfig, weights: Gathered, role: str) -> Tensor | None:
    if not config.qk_norm:
        return None
    weight = weights.take(role)
    return float32_at_least(weight) + config.norm_offset if config.norm_offset else weight


def _paths(weights: Gathered) -> Tensor:
    """Embeddings of paths for keys, then for values; row 0, of tokens of no path, is zero."""
    both_PG = torch.cat([weights.take("path_key"), weights.take("path_value")], dim=1)
    return F.pad(both_PG, (0, 0, 1, 0))
