"""Trains a language model's dense forward on a stream of tokens.

In come a model config, a Training recipe and two uint16 token streams; out come trained float32
weights, with loss and throughput as events on the way. Runs resume from a checkpoint bit for bit.
Shape letters: B windows, T tokens, V vocabulary.
"""

import math
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from engine.core.clock import Clock
from engine.core.errors import BadInput
from engine.models.config import ModelConfig
from engine.models.load import random_weights
from engine.models.parameters import all_parameters
from engine.models.reference import dense
from engine.training.checkpoint import Facts
from engine.training.descend import Emit, Poll, descend
from engine.training.evaluate import score
from engine.training.products import products
from engine.training.replicas import Alone, Replicas
from engine.training.settings import Training
from engine.training.stream import windows

__all__ = ["Emit", "Training", "descend", "fresh_weights", "train"]


def fresh_weights(config: ModelConfig, seed: int) -> dict[str, Tensor]:
    """Random float32 weights under their Hugging Face names.

    What writes into the residual stream is scaled down by sqrt(2 · layers) (GPT-2, section 2.3).
    """
    weights = random_weights(config, seed)
    for parameter in all_parameters(config):
        if any(role.rpartition(".")[2] in ("out", "down") for role, _ in parameter.roles):
            weights[parameter.name] /= math.sqrt(2 * config.layers)
    return weights


def train(
    config: ModelConfig,
    recipe: Training,
    training: np.ndarray,
    validation: np.ndarray,
    *,
    emit: Emit,
    clock: Clock,
    checkpoint: Path | None = None,
    start: dict[str, Tensor] | None = None,
    origin: Facts | None = None,
    replicas: Replicas | None = None,
    poll: Poll = lambda step: False,
) -> dict[str, Tensor]:
    """The trained weights, from `start` or else fresh ones.

    Checkpoints, events, `origin` and `poll` are as `descend` says. Of `replicas` each learns from
    its rows of every step; all of them together from what one alone would.
    """
    copies = replicas or Alone()

    def loss(weights: dict[str, Tensor], step: int) -> tuple[Tensor, int]:
        length, rows = recipe.window(step), recipe.rows(step)
        ids = windows(training, recipe.seed, step, rows, length)
        ids_BT = torch.from_numpy(np.split(ids, copies.ranks)[copies.rank])
        with products(recipe.precision):
            logits_BTV = dense(config, weights, ids_BT[:, :-1])
        nats = F.cross_entropy(logits_BTV.float().flatten(0, 1), ids_BT[:, 1:].flatten())
        return nats, rows // copies.ranks * length

    def judge(weights: dict[str, Tensor], step: int) -> dict[str, float]:
        held = score(config, weights, validation, recipe.window(step)).loss
        return {"validation_loss": held}

    require_rows(recipe, copies.ranks)
    weights = start or fresh_weights(config, recipe.seed)
    return descend(
        weights, recipe, loss, judge, emit=emit, clock=clock, checkpoint=checkpoint,
        origin=origin, replicas=replicas, poll=poll,
    )  # fmt: skip


def require_rows(recipe: Training, ranks: int) -> None:
    """Raises BadInput where a step's windows cannot be dealt out evenly."""
    for window in (recipe.context, recipe.long_context):
        rows = max(1, recipe.tokens // window)
        if rows % ranks:
            raise BadInput(
                f"ranks {ranks}: a step of {recipe.tokens} tokens has {rows} windows of {window}, "
                f"which they cannot share evenly; try tokens = {window * ranks * -(-rows // ranks)}"
            )
