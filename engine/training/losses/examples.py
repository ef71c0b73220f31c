"""Trains a language model on examples: what is read, who sees whom, and what is to be said where.

In come a model config, a Training recipe and a source of examples by number; out come float32
weights. Examples are packed into rows and never see each other. Shape letters: T tokens of an
example, L predictions of it; B rows, S tokens of a row; V vocabulary.
"""

from collections.abc import Callable, Iterator, Sequence
from itertools import count
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor

from engine.core.clock import Clock
from engine.models.config import ModelConfig
from engine.models.reference import dense
from engine.training.data.packing import Example, Packed, packs
from engine.training.loop.checkpoint import Facts
from engine.training.loop.precision import products
from engine.training.loop.single_process import SingleProcess
from engine.training.loop.training_loop import Emit, training_loop
from engine.training.losses.language import Training, fresh_weights
from engine.training.losses.view_forward import logits as over_views

Source = Callable[[int], Example]  # the example of a number, always the same one
Scores = Callable[[dict[str, Tensor]], dict[str, float]]
Nats = Callable[[Tensor, Tensor], Tensor]  # logits_LV, target_L -> the loss of each prediction
PER_STEP = 1 << 24  # numbers set aside for the examples of one step
ROWS = 8  # in one forward pass that only judges


def cross_entropy(logits_LV: Tensor, target_L: Tensor) -> Tensor:
    """nats_L of each target."""
    return F.cross_entropy(logits_LV, target_L, reduction="none")


def train_examples(
    config: ModelConfig,
    recipe: Training,
    source: Source,
    *,
    emit: Emit,
    clock: Clock,
    checkpoint: Path | None = None,
    start: dict[str, Tensor] | None = None,
    held_out: Sequence[Example] = (),
    scores: Scores | None = None,
    nats: Nats = cross_entropy,
    origin: Facts | None = None,
) -> dict[str, Tensor]:
    """The trained weights, with the resuming and the events of `language.train`.

    Each step learns from the next examples of `source` that fill its rows, by the loss `nats`.
    Emits validation_loss (cross-entropy) over `held_out` and whatever `scores` measures at each
    validation.
    """

    def loss(weights: dict[str, Tensor], step: int) -> tuple[Tensor, int]:
        rows, length = recipe.rows(step), recipe.window(step)
        packed = next(packs(numbered(source, recipe.seed, step), rows, length))
        found = weighted_loss(config, weights, packed, recipe.precision, nats)
        return found, packed.tokens_BS.numel()

    def judge(weights: dict[str, Tensor], step: int) -> dict[str, float]:
        found = scores(weights) if scores else {}
        if held_out:
            length = recipe.window(step)
            found = {"validation_loss": example_loss(config, weights, held_out, length), **found}
        return found

    weights = start or fresh_weights(config, recipe.seed)
    learner = SingleProcess(weights, recipe, loss, checkpoint)
    training_loop(learner, recipe, judge, emit=emit, clock=clock, origin=origin)
    return learner.whole()


def numbered(source: Source, seed: int, step: int) -> Iterator[Example]:
    """The examples of a step, no number of which another step or near seed has."""
    first = (seed << 44) + step * PER_STEP
    return (source(number) for number in count(first))


def logits_of(
    config: ModelConfig, weights: dict[str, Tensor], packed: Packed, precision: str = "float32"
) -> Tensor:
    """logits_LV in float32 at the packed predictions."""
    with products(precision):
        if packed.blocks is not None:
            seen = packed.positions_BS, packed.visible_BSS, *packed.blocks
            logits_BSV = over_views(config, weights, packed.tokens_BS, *seen)
            return logits_BSV.flatten(0, 1)[packed.at_L].float()
        logits_BSV = dense(config, weights, packed.tokens_BS, **packed.order)
    return logits_BSV.flatten(0, 1)[packed.at_L].float()


def weighted_loss(
    config: ModelConfig,
    weights: dict[str, Tensor],
    packed: Packed,
    precision: str = "float32",
    nats: Nats = cross_entropy,
) -> Tensor:
    """Nats per prediction, each counted by its weight."""
    logits_LV = logits_of(config, weights, packed, precision)
    nats_L = nats(logits_LV, packed.target_L)
    return (nats_L * packed.weight_L).sum() / packed.weight_L.sum()


def example_loss(
    config: ModelConfig, weights: dict[str, Tensor], examples: Sequence[Example], length: int
) -> float:
    """Nats per prediction over all `examples`, packed into rows of `length`, in float32."""
    nats, total = 0.0, 0.0
    with torch.inference_mode():
        for packed in packs(examples, ROWS, length):
            weight = float(packed.weight_L.sum())
            nats += float(weighted_loss(config, weights, packed)) * weight
            total += weight
    return nats / total
