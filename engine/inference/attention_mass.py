"""How much attention each page receives: one layer's weights, computed again for a sampled step.

Shape letters: B sequences, H query heads, G key/value heads, D head size, C visible tokens.
"""

from contextlib import suppress
from copy import copy
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from engine.inference.gather import last_tokens
from engine.inference.step import Step
from engine.models.attention import Attention
from engine.models.gathered import Cast, Gathered
from engine.models.kv import PagedKV
from engine.models.latent_attention import LatentAttention
from engine.models.layers import softcap
from engine.models.model import Model
from engine.models.norm import Norm
from engine.models.ops import plain_ops
from engine.models.parameters import layer_parameters


class _Reached(Exception):
    """The query is known; the rest of the layer is not needed."""


@dataclass(slots=True)
class _Query:
    """What attention was asked in the layer."""

    q_BHD: Tensor | None = None
    k_PSGD: Tensor | None = None
    scale: float = 1.0
    window: int = 0
    softcap: float = 0.0


class AttentionProbe:
    """Runs the last new token of each sequence once more, up to one layer's queries.

    A fused model's layer is read again at the first sample, in plain torch, and then kept: one
    layer's attention weights. Nothing of the real pass changes: new keys go where nobody reads.
    """

    def __init__(self, model: Model, layer: int, head: int) -> None:
        self.model, self.head = model, head
        self.layer = layer % model.config.layers
        self.parts: tuple[Norm, Attention | LatentAttention] | None = None
        self.asked = _Query()

    def mass(self, step: Step, kv: PagedKV, scratch: int) -> np.ndarray:
        """mass_P float32 over the pool's pages; it sums to the number of sequences."""
        if self.parts is None:
            self.parts = self._layer()
        batch, (norm, attention) = last_tokens(step, scratch), self.parts
        with suppress(_Reached), torch.inference_mode():
            x_BC = norm(self.model.hidden(batch, kv, self.layer))
            attention(x_BC, self.model.shared(batch), kv.tensors[self.layer])
        mass_P = np.zeros(kv.pages, np.float32)
        for b, context in enumerate(batch.context_B.tolist()):
            pages = batch.block_table_BP[b, : -(-context // kv.page_size)]
            weights_C = self._weights(b, pages, context)
            starts = np.arange(0, context, kv.page_size)
            mass_P[pages] += np.add.reduceat(weights_C, starts)
        return mass_P[:scratch]

    def _layer(self) -> tuple[Norm, Attention | LatentAttention]:
        """The layer's norm, and its attention stopping where it has the queries."""
        model, config = self.model, self.model.config
        attention: Attention | LatentAttention
        if model.fused is None:
            block = model.blocks[self.layer]
            norm, attention = block.attention_norm, copy(block.attention)
        else:
            source = Cast(model.weights, model.dtype)  # rounded as the fused step has them
            parameters = layer_parameters(config, self.layer)
            weights = Gathered(parameters, source, plain_ops(), torch.float32, model.device)
            norm = Norm(config, weights, "attention_norm")
            attention = Attention(config, self.layer, weights)
        attention.ops = replace(attention.ops, paged_attention=self._listen)
        return norm, attention

    def _listen(
        self, q_BHD: Tensor, k_PSGD: Tensor, *_: object, scale: float, **rest: float
    ) -> Tensor:
        window, cap = int(rest.get("window", 0)), rest.get("softcap", 0.0)
        self.asked = _Query(q_BHD, k_PSGD, scale, window, cap)
        raise _Reached

    def _weights(self, b: int, pages: np.ndarray, context: int) -> np.ndarray:
        """weights_C of sequence b's last token: of one head, or the mean of all."""
        asked = self.asked
        assert asked.q_BHD is not None and asked.k_PSGD is not None
        k_CGD = asked.k_PSGD[torch.from_numpy(pages.astype(np.int64))].flatten(0, 1)[:context]
        q_GJD = asked.q_BHD[b].float().unflatten(0, (k_CGD.shape[1], -1))
        scores_GJC = torch.einsum("gjd,cgd->gjc", q_GJD, k_CGD.float()) * asked.scale
        scores_GJC = softcap(scores_GJC, asked.softcap)
        if asked.window and context > asked.window:
            scores_GJC[..., : context - asked.window] = float("-inf")
        weights_HC = scores_GJC.softmax(-1).flatten(0, 1)
        chosen_C = weights_HC.mean(0) if self.head < 0 else weights_HC[self.head % len(weights_HC)]
        return chosen_C.cpu().numpy()
