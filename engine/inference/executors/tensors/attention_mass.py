"""Attention mass: how much attention each page receives in a sampled step, by one layer's weights.

Of threads over views: how much each block of its view receives from each thread.

Shape letters: B sequences or threads, N blocks of the longest view, H query heads, G key/value
heads, D head size, C visible tokens.
"""

from collections.abc import Callable
from contextlib import suppress
from copy import copy
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from engine.inference.executors.tensors.gather import last_of, last_tokens
from engine.inference.requests.step import Step
from engine.inference.requests.view_sequences import ViewBatch
from engine.models.attention import Attention
from engine.models.batch import Batch
from engine.models.gathered import Cast, Gathered
from engine.models.kv import PagedKV
from engine.models.latent_attention import LatentAttention
from engine.models.layers import softcap
from engine.models.model import Block, Model
from engine.models.norm import Norm
from engine.models.ops import plain_ops
from engine.models.parameters import layer_parameters
from engine.models.recurrent_layer import Recurrent
from engine.models.rotary import cos_sin, frequencies, rotate
from engine.models.view_attention import pure

Normed = Callable[[Tensor], Tensor]  # a norm, or nothing in its place


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
        self.parts: tuple[Normed, Attention | LatentAttention] | None = None
        self.asked = _Query()

    def mass(self, step: Step, kv: PagedKV, scratch: int) -> np.ndarray:
        """mass_P float32 over the pool's pages; it sums to the number of sequences."""
        batch = last_tokens(step, scratch)
        self._ask(batch, kv)
        mass_P = np.zeros(kv.pages, np.float32)
        for b, context in enumerate(batch.context_B.tolist()):
            pages = batch.block_table_BP[b, : -(-context // kv.page_size)]
            weights_C = self._chosen(self._scores(b, pages, context, context - 1))
            starts = np.arange(0, context, kv.page_size)
            mass_P[pages] += np.add.reduceat(weights_C, starts)
        return mass_P[:scratch]

    def blocks(self, threads: ViewBatch, kv: PagedKV, scratch: int) -> np.ndarray:
        """mass_BN float32: each thread's blocks in the order of its view, NaN beyond; sums to 1."""
        batch = last_of(threads.batch, scratch * kv.page_size)
        self._ask(batch, kv)
        views, count = batch.views, len(batch.context_B)
        first = [0] * (count + 1) if views is None else views.first_B1.tolist()
        found = []
        for b, own in enumerate(batch.context_B.tolist()):
            scores = []
            for n in range(first[b], first[b + 1]):
                assert views is not None
                pages, seen = views.table_KP[views.block_N[n]], int(views.seen_N[n])
                shift = int(views.shift_N[n])
                scores.append(self._scores(b, pages, seen, own - 1 + shift, shift))
            scores.append(self._scores(b, batch.block_table_BP[b], own, own - 1))
            ends = np.cumsum([0] + [part.shape[-1] for part in scores[:-1]])
            found.append(np.add.reduceat(self._chosen(torch.cat(scores, -1)), ends))
        mass_BN = np.full((count, max(map(len, found))), np.nan, np.float32)
        for row, masses in zip(mass_BN, found, strict=True):
            row[: len(masses)] = masses
        return mass_BN

    def _ask(self, batch: Batch, kv: PagedKV) -> None:
        """Run `batch` up to the layer's queries, rotated by their positions in their own blocks."""
        if self.parts is None:
            self.parts = self._layer()
        norm, attention = self.parts
        with suppress(_Reached), torch.inference_mode():
            x_BC = norm(self.model.hidden(batch, kv, self.layer))
            here = replace(self.model.shared(batch), views=None)
            attention(x_BC, here, kv.tensors[self.model.config.source(self.layer)])

    def _layer(self) -> tuple[Normed, Attention | LatentAttention]:
        """The layer's norm, and its attention stopping where it has the queries."""
        model, config = self.model, self.model.config
        attention: Attention | LatentAttention
        norm: Normed
        if model.fused is None:
            block = model.blocks[self.layer]
            assert isinstance(block, Block)
            norm, held = block.attention_norm, copy(block.attention)
            assert not isinstance(held, Recurrent)
            attention = held
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

    def _scores(
        self, b: int, pages: np.ndarray, count: int, position: int, shift: int = 0
    ) -> Tensor:
        """scores_GJC of sequence b's last token, at `position` of a block, with its first `count`
        tokens; the block begins `shift` positions before the sequence's own."""
        asked = self.asked
        assert asked.q_BHD is not None and asked.k_PSGD is not None
        pages = pages[: -(-count // asked.k_PSGD.shape[1])]
        k_CGD = asked.k_PSGD[torch.from_numpy(pages.astype(np.int64))].flatten(0, 1)[:count]
        q_HD = asked.q_BHD[b].float()
        if shift:
            q_HD = self._turned(q_HD, shift)
        q_GJD = q_HD.unflatten(0, (k_CGD.shape[1], -1))
        scores_GJC = torch.einsum("gjd,cgd->gjc", q_GJD, k_CGD.float()) * asked.scale
        scores_GJC = softcap(scores_GJC, asked.softcap)
        if asked.window and position + 1 > asked.window:
            scores_GJC[..., : position + 1 - asked.window] = float("-inf")
        return scores_GJC

    def _turned(self, q_HD: Tensor, shift: int) -> Tensor:
        """Queries as if their own block began `shift` positions later."""
        rotary = self.model.config.rotary
        assert rotary is not None
        angles, at = frequencies(pure(rotary)).to(q_HD.device), torch.tensor([shift])
        cos, sin = cos_sin(pure(rotary), angles, at.to(q_HD.device), torch.float32)
        return rotate(q_HD[None], cos, sin, False)[0]

    def _chosen(self, scores_GJC: Tensor) -> np.ndarray:
        """weights_C: of one head, or the mean of all."""
        weights_HC = scores_GJC.softmax(-1).flatten(0, 1)
        chosen_C = weights_HC.mean(0) if self.head < 0 else weights_HC[self.head % len(weights_HC)]
        return chosen_C.cpu().numpy()
