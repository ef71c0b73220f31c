"""Feed-forward layers: dense, gated or not, and a mixture of experts.

A router sends every token to its few experts; their outputs are weighed.
Shape letters: T tokens, C hidden, E experts, K experts per token, W expert width.
"""

from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor

from engine.models.config import ModelConfig
from engine.models.gathered import Gathered
from engine.models.layers import ACTIVATIONS, gated, route


def _glu(config: ModelConfig, weights: Gathered) -> Callable[[Tensor, Tensor], Tensor]:
    """Gate and up to what goes down, by the operations' own where they have it."""
    plain = config.activation == "silu" and not config.glu_limit
    return weights.ops.swiglu if plain else partial(gated, config)


class FeedForward:
    """One layer's dense feed-forward; `prefix` picks the shared expert of a mixture."""

    def __init__(self, config: ModelConfig, weights: Gathered, prefix: str = "") -> None:
        gate = [f"{prefix}gate"] if config.gated else []
        self.into = weights.linear(*gate, f"{prefix}up")
        self.down = weights.linear(f"{prefix}down")
        self.act = ACTIVATIONS[config.activation]
        self.gated = config.gated
        self.glu = _glu(config, weights)

    def __call__(self, x_TC: Tensor) -> Tensor:
        """y_TC for normalised x_TC."""
        inner = self.into(x_TC)
        if not self.gated:
            return self.down(self.act(inner))
        gate, up = inner.chunk(2, dim=-1)
        return self.down(self.glu(gate, up))


class Mixture:
    """One layer's experts: reads only the weights of experts that got a token."""

    def __init__(self, config: ModelConfig, weights: Gathered) -> None:
        moe = config.experts
        assert moe is not None
        self.moe = moe
        self.glu = _glu(config, weights)
        self.router = weights.linear("router")
        self.correction = weights.take("correction") if moe.correction else None
        each = [f"experts.{expert}." for expert in range(moe.count)]
        self.into = [weights.linear(f"{expert}gate", f"{expert}up") for expert in each]
        self.down = [weights.linear(f"{expert}down") for expert in each]
        self.shared = FeedForward(config, weights, "shared.") if moe.shared else None
        self.open = weights.linear("shared.open") if moe.shared_gate else None

    def __call__(self, x_TC: Tensor) -> Tensor:
        """y_TC for normalised x_TC."""
        index_TK, weight_TK = route(self.moe, self.router(x_TC), self.correction)
        y_TC = self.shared(x_TC) if self.shared else torch.zeros_like(x_TC)
        y_TC = y_TC * self.open(x_TC).sigmoid() if self.open else y_TC
        order = index_TK.flatten().argsort(stable=True)
        token = order // self.moe.per_token
        weight = weight_TK.flatten()[order, None].to(x_TC.dtype)
        counts_E = index_TK.flatten().bincount(minlength=self.moe.count).tolist()
        stop = 0
        for expert, count in enumerate(counts_E):
            if not count:
                continue
            rows = slice(stop, stop + count)
            stop += count
            gate, up = self.into[expert](x_TC[token[rows]]).chunk(2, dim=-1)
            out = self.down[expert](self.glu(gate, up))
            y_TC.index_add_(0, token[rows], out * weight[rows])
        return y_TC
