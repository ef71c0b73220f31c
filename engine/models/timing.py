"""A forward pass with the time of each of its parts: what a roofline of a real decode is made of.

In comes a batch; out go the logits that `Model.forward` gives and how long each part took, all
layers together. A model compiled into one call stamps its phases itself; the general path is timed
from outside, part by part, which on a GPU waits for the device between parts.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor

from engine.core.clock import counted
from engine.kernels.decoder_step.phases_cpu import (
    ATTEND,
    DOWN,
    GATE,
    KINDS,
    NORM,
    NORM_AGAIN,
    OUT,
    QKV,
    STORE,
)
from engine.models import fused_step
from engine.models.batch import Batch
from engine.models.kv import PagedKV
from engine.models.layers import finished
from engine.models.model import HalfBlock, Model


class Part(NamedTuple):
    """`covers`: names of `engine.models.footprint.OpWork` whose work the part does."""

    name: str
    covers: tuple[str, ...]
    seconds: float


NORMS, HEAD = "norms", "head"
FUSED = (  # part, the work it does, its phases of each layer
    ("qkv", ("qkv",), (QKV,)),
    ("attention", ("attention",), (STORE, ATTEND)),
    ("out", ("out",), (OUT,)),
    ("mlp", ("mlp",), (GATE, DOWN)),
    (NORMS, (NORMS,), (NORM, NORM_AGAIN)),
)
GENERAL = (
    ("attention block", ("qkv", "latent_up", "attention", "out")),
    ("mlp", ("mlp", "router", "experts", "shared_expert")),
    (NORMS, (NORMS,)),
    (HEAD, (HEAD,)),
)


@torch.inference_mode()
def timed_forward(model: Model, batch: Batch, kv: PagedKV) -> tuple[Tensor, list[Part]]:
    """logits_RV in float32, and the parts of the pass in the order of a layer."""
    if isinstance(model.fused, fused_step.Fused):
        return _fused(model.fused, batch, kv)
    watch = _Watch(model.device)
    logits_RV = _general(model, batch, kv, watch)
    return logits_RV, [Part(name, covers, watch.seconds.get(name, 0.0)) for name, covers in GENERAL]


def _fused(fused: fused_step.Fused, batch: Batch, kv: PagedKV) -> tuple[Tensor, list[Part]]:
    logits_RV, phases = fused.timed(batch, kv)
    layers_LK = phases[: fused.config.layers * KINDS].reshape(-1, KINDS)
    parts = [
        Part(name, covers, float(layers_LK[:, list(kinds)].sum())) for name, covers, kinds in FUSED
    ]
    last = phases[fused.config.layers * KINDS :]
    return logits_RV, [*parts, Part(HEAD, (HEAD,), float(last.sum()))]


class _Watch:
    """Adds up how long calls take, by part."""

    def __init__(self, device: str) -> None:
        self.waits = device.startswith("cuda")
        self.seconds: dict[str, float] = {}

    def __call__(self, part: str, call: Callable[..., Tensor], *arguments: Any) -> Tensor:
        began = self._now()
        y = call(*arguments)
        self.seconds[part] = self.seconds.get(part, 0.0) + self._now() - began
        return y

    def _now(self) -> float:
        if self.waits:
            torch.cuda.synchronize()
        return counted()


def _general(model: Model, batch: Batch, kv: PagedKV, watch: _Watch) -> Tensor:
    """`Model.forward`, its parts called through the watch."""
    attention, mlp = GENERAL[0][0], GENERAL[1][0]
    batch = model.rows(batch, kv)
    here = model.shared(batch)
    x_TC = model.embed(batch)
    for block, cache in zip(model.blocks, model.pages(kv), strict=False):
        if isinstance(block, HalfBlock):
            normed_TC = watch(NORMS, block.norm, x_TC)
            if block.mixer is not None:
                x_TC = x_TC + watch(attention, block.mixer, normed_TC, here, cache)
            else:
                x_TC = x_TC + watch(mlp, block.feed, normed_TC)
            continue
        normed_TC = watch(NORMS, block.attention_norm, x_TC)
        y_TC = watch(attention, block.attention, normed_TC, here, cache)
        x_TC = block.add(x_TC, watch(NORMS, block.post[0], y_TC) if block.post else y_TC)
        y_TC = watch(mlp, block.mlp, watch(NORMS, block.mlp_norm, x_TC))
        x_TC = block.add(x_TC, watch(NORMS, block.post[1], y_TC) if block.post else y_TC)
        x_TC = watch(mlp, block.end, x_TC, here.inputs_LTE) if block.end else x_TC
    at_R = torch.from_numpy(batch.logits_at_R).to(model.device).long()
    x_RC = model.mixed(watch(NORMS, model.norm, x_TC[at_R]))
    return finished(model.config, watch(HEAD, model.head, x_RC).float())
