"""How far training on a trie is from training on each of its requests by itself.

In come a model and requests; out come the losses and gradients both ways. By itself each request
is a plain causal forward at positions 0, 1, 2 …, without any mask of ours.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from engine.models.config import ModelConfig
from engine.models.reference import dense
from engine.training.data.packing import Example, Unit, completed, packs, trie

SMALLEST = 1e-3  # of the largest gradient: below it a weight's own is no measure


class Difference(NamedTuple):
    """Largest differences relative to what is compared, and the tokens each way computes."""

    loss: float
    gradient: float  # of any weight, over that tensor's largest gradient
    trie_tokens: int
    separate_tokens: int


def difference(
    config: ModelConfig,
    weights: Mapping[str, Tensor],
    units: Sequence[Unit],
    dtype: torch.dtype = torch.float64,
    siblings_apart: bool = True,
) -> Difference:
    """Loss and gradients of the trie against those of its units, all in `dtype`."""
    packed, alone = trie(units, siblings_apart), separate(units)

    def together(own: Mapping[str, Tensor]) -> Tensor:
        return _trie_loss(config, own, packed)

    def apart(own: Mapping[str, Tensor]) -> Tensor:
        nats = torch.stack([_nats(config, own, example) for example in alone]).sum()
        return nats / sum(len(example.at_L) for example in alone)

    loss, gradients = _gradients(weights, together, dtype)
    wanted, held = _gradients(weights, apart, dtype)
    largest = {name: float(gradient.abs().max()) for name, gradient in held.items()}
    least = SMALLEST * max(largest.values())
    worst = max(
        float((gradients[name] - held[name]).abs().max()) / max(largest[name], least)
        for name in held
    )
    sizes = len(packed), sum(len(example) for example in alone)
    return Difference(abs(loss - wanted) / abs(wanted), worst, *sizes)


def separate(units: Sequence[Unit]) -> list[Example]:
    """Each unit as an example of its own: what the trie has to equal."""
    return [completed(list(unit.context), list(unit.completion)) for unit in units]


def _trie_loss(config: ModelConfig, weights: Mapping[str, Tensor], example: Example) -> Tensor:
    (packed,) = packs([example], 1, len(example))
    logits_BSV = dense(config, weights, packed.tokens_BS, **packed.order)
    logits_LV = logits_BSV.flatten(0, 1)[packed.at_L]
    nats_L = F.cross_entropy(logits_LV, packed.target_L, reduction="none")
    weight_L = packed.weight_L.to(nats_L.dtype)
    return (nats_L * weight_L).sum() / weight_L.sum()


def _nats(config: ModelConfig, weights: Mapping[str, Tensor], example: Example) -> Tensor:
    """Summed nats of one request's own predictions."""
    logits_TV = dense(config, weights, torch.from_numpy(example.tokens_T)[None])[0]
    target_L = torch.from_numpy(example.target_L)
    return F.cross_entropy(logits_TV[torch.from_numpy(example.at_L)], target_L, reduction="sum")


def _gradients(
    weights: Mapping[str, Tensor],
    loss: Callable[[Mapping[str, Tensor]], Tensor],
    dtype: torch.dtype,
) -> tuple[float, dict[str, Tensor]]:
    own = {name: w.detach().to(dtype).requires_grad_() for name, w in weights.items()}
    value = loss(own)
    found = torch.autograd.grad(value, list(own.values()))
    return float(value.detach()), dict(zip(own, found, strict=True))
