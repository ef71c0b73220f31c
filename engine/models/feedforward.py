"""Feed-forward layers: dense, gated or not, and a mixture of experts.

A router sends every token to its few experts; their outputs are weighed. And what a layer is told
of a token besides what the ones before it found (Gemma-4).
Shape letters: T tokens, C hidden, E experts or numbers for each layer, K experts per token, L
layers.
"""

from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor, nn

from engine.models.config import ModelConfig
from engine.models.duo.routes import BIG, NONE, PREFIX, Routes
from engine.models.gathered import Gathered
from engine.models.layers import ACTIVATIONS, asked, gated, mixed_inputs, route
from engine.models.norm import Norm


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


class DuoFeedForward:
    """One layer's small and big feed-forward, of which each token takes one or neither."""

    def __init__(self, config: ModelConfig, layer: int, weights: Gathered) -> None:
        assert config.duo is not None
        self.layer, self.wastes = layer, config.duo.fault == "computed"
        self.modules = {
            which: FeedForward(config, weights, prefix) for which, prefix in PREFIX.items()
        }
        self.router = weights.linear("router")

    def __call__(self, x_TC: Tensor, routes: Routes) -> Tensor:
        """y_TC for normalised x_TC: rows of a module are computed by it alone."""
        choice_T = routes.take(self.layer, lambda: self.router(x_TC))
        y_TC = torch.zeros_like(x_TC)
        for which, module in self.modules.items():
            at_K = (choice_T == which).nonzero()[:, 0]
            if len(at_K) == len(x_TC):  # in place, with the bits of a plain layer
                return module(x_TC)
            if len(at_K):
                y_TC.index_copy_(0, at_K, module(x_TC[at_K]).to(y_TC.dtype))
        if self.wastes:
            self.modules[BIG](x_TC[choice_T == NONE])
        return y_TC


class Mixture:
    """One layer's experts: reads only the weights of experts that got a token."""

    def __init__(self, config: ModelConfig, weights: Gathered) -> None:
        moe = config.experts
        assert moe is not None
        self.moe = moe
        self.glu = _glu(config, weights)
        self.router = weights.linear("router")
        self.correction = weights.take("correction") if moe.correction else None
        self.gain = weights.take("router_gain") if config.fed_twice else None
        each = [f"experts.{expert}." for expert in range(moe.count)]
        gate = ["gate"] if config.gated else []
        self.into = [weights.linear(*(expert + role for role in (*gate, "up"))) for expert in each]
        self.down = [weights.linear(f"{expert}down") for expert in each]
        self.shared = FeedForward(config, weights, "shared.") if moe.shared else None
        self.open = weights.linear("shared.open") if moe.shared_gate else None
        self.act = None if config.gated else ACTIVATIONS[config.activation]
        self.narrow = weights.linear("latent_in") if moe.latent else None
        self.wide = weights.linear("latent_out") if moe.latent else None

    def __call__(self, x_TC: Tensor, read_TC: Tensor | None = None) -> Tensor:
        """y_TC for normalised x_TC; `read_TC`: what the router reads, where that is not x_TC."""
        scores_TE = self.router(x_TC if read_TC is None else read_TC)
        index_TK, weight_TK = route(self.moe, scores_TE, self.correction, self.gain)
        y_TC = self.shared(x_TC) if self.shared else torch.zeros_like(x_TC)
        y_TC = y_TC * self.open(x_TC).sigmoid() if self.open else y_TC
        if self.narrow is None or self.wide is None:
            return self._routed(x_TC, index_TK, weight_TK, y_TC)
        x_TC = self.narrow(x_TC)
        return y_TC + self.wide(self._routed(x_TC, index_TK, weight_TK, torch.zeros_like(x_TC)))

    def _routed(self, x_TC: Tensor, index_TK: Tensor, weight_TK: Tensor, y_TC: Tensor) -> Tensor:
        """y_TC with what each token's experts say added in place."""
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
            inner = self.into[expert](x_TC[token[rows]])
            inner = self.act(inner) if self.act else self.glu(*inner.chunk(2, dim=-1))
            out = self.down[expert](inner)
            y_TC.index_add_(0, token[rows], out * weight[rows])
        return y_TC


class Beside:
    """One layer's feed-forward and experts side by side, each between norms of its own."""

    def __init__(self, config: ModelConfig, weights: Gathered) -> None:
        self.config = config
        self.dense, self.mixture = FeedForward(config, weights), Mixture(config, weights)
        names = ("mlp_norm", "dense_post_norm", "experts_norm", "experts_post_norm")
        self.norms = [Norm(config, weights, name) for name in names]
        self.scale_C = weights.take("router_scale")

    def __call__(self, x_TC: Tensor) -> Tensor:
        """y_TC for a layer's x_TC as it is."""
        before, after, before_experts, after_experts = self.norms
        read_TC = asked(self.config, x_TC, self.scale_C)
        mixed_TC = self.mixture(before_experts(x_TC), read_TC)
        return after(self.dense(before(x_TC))) + after_experts(mixed_TC)


class InputsOfLayers:
    """What all layers of a forward pass are told of its tokens."""

    def __init__(self, config: ModelConfig, weights: Gathered) -> None:
        self.config = config
        self.embedding_VX = weights.take("layer_embedding")
        self.projection = weights.linear("layer_projection")
        self.norm_E = weights.take("layer_norm")

    def __call__(self, tokens_T: Tensor, x_TC: Tensor) -> Tensor:
        """inputs_LTE for tokens and their embeddings."""
        own_TX = nn.functional.embedding(tokens_T, self.embedding_VX)
        found_TLE = mixed_inputs(self.config, own_TX, self.projection(x_TC), self.norm_E)
        return found_TLE.transpose(0, 1)


class LayerEnd:
    """What a layer does behind its feed-forward: adds what its inputs say, then scales all."""

    def __init__(self, config: ModelConfig, layer: int, weights: Gathered) -> None:
        self.layer, self.part = layer, config.layer_inputs
        self.act = ACTIVATIONS[config.activation]
        if self.part is not None:
            self.gate, self.out = weights.linear("input_gate"), weights.linear("input_out")
            self.norm = Norm(config, weights, "input_norm")
        self.scale = weights.take("layer_scalar") if config.layer_scale else None

    def __call__(self, x_TC: Tensor, inputs_LTE: Tensor | None) -> Tensor:
        """x_TC as the next layer gets it."""
        if inputs_LTE is not None:
            x_TC = x_TC + self.norm(self.out(self.act(self.gate(x_TC)) * inputs_LTE[self.layer]))
        return x_TC if self.scale is None else x_TC * self.scale
