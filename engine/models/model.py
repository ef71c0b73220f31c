"""The transformer the engine runs: a batch over paged memory in, logits out.

Shape letters: T new tokens, C hidden, R wanted logits, V vocabulary.
"""

from collections.abc import Mapping
from typing import Protocol

import torch
import torch.nn.functional as F
from torch import Tensor

from engine.models.attention import Attention, Pass
from engine.models.batch import Batch
from engine.models.config import ModelConfig
from engine.models.experts import Mixture
from engine.models.feedforward import FeedForward
from engine.models.gathered import Gathered
from engine.models.kv import CacheSpec, PagedKV, cache_spec
from engine.models.latent_attention import LatentAttention
from engine.models.layers import Norm, softcap
from engine.models.linear import Linear
from engine.models.parameters import layer_parameters, outer_parameters
from engine.models.rotary import cos_sin, frequencies


class Fused(Protocol):
    """A whole forward pass in one call, for the batches it can do."""

    def fits(self, batch: Batch, kv: PagedKV) -> bool:
        """Whether this batch can go through it."""

    def forward(self, batch: Batch, kv: PagedKV) -> Tensor:
        """logits_RV, equal to the general path's within rounding."""


class Block:
    """One layer: attention, then feed-forward or experts, each behind a norm and added back."""

    def __init__(self, config: ModelConfig, layer: int, weights: Gathered) -> None:
        self.attention_norm = Norm(config, weights, "attention_norm")
        self.attention = (LatentAttention if config.latent else Attention)(config, layer, weights)
        self.mlp_norm = Norm(config, weights, "mlp_norm")
        routed = config.expert_layers[layer]
        self.mlp = Mixture(config, weights) if routed else FeedForward(config, weights)
        self.post: tuple[Norm, Norm] | None = None
        if config.sandwich:
            names = ("attention_post_norm", "mlp_post_norm")
            self.post = (Norm(config, weights, names[0]), Norm(config, weights, names[1]))

    def __call__(self, x_TC: Tensor, here: Pass, cache: dict[str, Tensor]) -> Tensor:
        """x_TC after this layer."""
        y_TC = self.attention(self.attention_norm(x_TC), here, cache)
        x_TC = x_TC + (self.post[0](y_TC) if self.post else y_TC)
        y_TC = self.mlp(self.mlp_norm(x_TC))
        return x_TC + (self.post[1](y_TC) if self.post else y_TC)


class Model:
    """A model ready to run. `weights` are views, by Hugging Face name, of the laid-out memory."""

    def __init__(
        self, config: ModelConfig, source: Mapping[str, Tensor], dtype: str = "float32"
    ) -> None:
        self.config = config
        self.dtype = getattr(torch, dtype)
        self.spec: CacheSpec = cache_spec(config, dtype)
        self.weights: dict[str, Tensor] = {}
        outer = Gathered(outer_parameters(config), source, self.weights, self.dtype)
        self.embedding_VC = outer.take("embedding")
        self.positions_PC = outer.take("positions") if config.rotary is None else None
        self.norm = Norm(config, outer, "norm")
        self.head = Linear(self.embedding_VC) if config.tied else outer.linear("head")
        self.blocks = [self._block(layer, source) for layer in range(config.layers)]
        self.frequencies_F = frequencies(config.rotary) if config.rotary else None
        self.fused: Fused | None = None

    def _block(self, layer: int, source: Mapping[str, Tensor]) -> Block:
        parameters = layer_parameters(self.config, layer)
        return Block(self.config, layer, Gathered(parameters, source, self.weights, self.dtype))

    @torch.inference_mode()
    def forward(self, batch: Batch, kv: PagedKV) -> Tensor:
        """logits_RV in float32 at `batch.logits_at_R`; new keys and values are written to `kv`."""
        if self.fused is not None and self.fused.fits(batch, kv):
            return self.fused.forward(batch, kv)
        positions_T = torch.from_numpy(batch.positions_T)
        x_TC = self._embed(torch.from_numpy(batch.tokens_T), positions_T)
        slots_T = torch.from_numpy(batch.slots_T).long()
        here = Pass(batch, slots_T, self._turn(batch, positions_T))
        for block, cache in zip(self.blocks, kv.tensors, strict=True):
            x_TC = block(x_TC, here, cache)
        x_RC = self.norm(x_TC[torch.from_numpy(batch.logits_at_R).long()])
        return softcap(self.head(x_RC).float(), self.config.logit_softcap)

    def _embed(self, tokens_T: Tensor, positions_T: Tensor) -> Tensor:
        x_TC = F.embedding(tokens_T, self.embedding_VC)
        if self.config.embedding_scale != 1.0:
            # Rounded to the weights' type first, as the checkpoint was trained.
            x_TC = x_TC * torch.tensor(self.config.embedding_scale, dtype=self.dtype)
        if self.positions_PC is not None:
            x_TC = x_TC + F.embedding(positions_T, self.positions_PC)
        return x_TC

    def _turn(self, batch: Batch, positions_T: Tensor) -> tuple[Tensor, Tensor] | None:
        rotary = self.config.rotary
        if rotary is None or self.frequencies_F is None:
            return None
        angles = self.frequencies_F
        if rotary.kind == "dynamic":
            lengths = torch.from_numpy(batch.query_start_B1).diff()
            context_T = torch.from_numpy(batch.context_B).repeat_interleave(lengths)
            angles = frequencies(rotary, context_T)
        return cos_sin(rotary, angles, positions_T, self.dtype)
