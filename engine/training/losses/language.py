"""Trains a language model's dense forward on a stream of tokens.

In come a model config, a Training recipe and two uint16 token streams; out come trained float32
weights, with loss and throughput as events on the way. Runs resume from a checkpoint bit for bit.
Shape letters: B windows, T tokens, V vocabulary.
"""

import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from engine.core.clock import Clock
from engine.models.config import ModelConfig
from engine.models.loading.load import random_weights
from engine.models.parameters import all_parameters
from engine.models.reference import dense
from engine.training.data.windows import windows
from engine.training.loop.checkpoint import Facts
from engine.training.loop.precision import products
from engine.training.loop.settings import Training
from engine.training.loop.single_process import SingleProcess
from engine.training.loop.training_loop import Emit, Judge, Poll, training_loop
from engine.training.losses.evaluate import score


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
    poll: Poll = lambda step: False,
    teacher: tuple[ModelConfig, dict[str, Tensor]] | None = None,
) -> dict[str, Tensor]:
    """The trained weights, from `start` or else fresh ones, in this process.

    It learns the next token as written, or the distribution that a `teacher` (config and float32
    weights) gives it (distillation: Hinton et al., arXiv 1503.02531, section 2, temperature 1).
    Checkpoints, events, `origin` and `poll` are as `training_loop` says.
    """
    given = ids_of(recipe, training)

    def loss(weights: dict[str, Tensor], step: int) -> tuple[Tensor, int]:
        ids_BT = given(step)
        with products(recipe.precision):
            logits_BTV = dense(config, weights, ids_BT[:, :-1])
        targets = ids_BT[:, 1:].flatten()
        if teacher is not None:
            with torch.no_grad(), products(recipe.precision):
                taught_BTV = dense(*teacher, ids_BT[:, :-1])
            targets = taught_BTV.float().softmax(-1).flatten(0, 1)
        return F.cross_entropy(logits_BTV.float().flatten(0, 1), targets), len(targets)

    learner = SingleProcess(start or fresh_weights(config, recipe.seed), recipe, loss, checkpoint)
    training_loop(
        learner, recipe, judge_of(config, recipe, validation), emit=emit, clock=clock,
        origin=origin, poll=poll,
    )  # fmt: skip
    return learner.whole()


def ids_of(recipe: Training, training: np.ndarray) -> Callable[[int], Tensor]:
    """Of a step the windows it learns from, ids [B, T + 1]."""

    def given(step: int) -> Tensor:
        rows, length = recipe.rows(step), recipe.window(step)
        return torch.from_numpy(windows(training, recipe.seed, step, rows, length))

    return given


def judge_of(config: ModelConfig, recipe: Training, validation: np.ndarray) -> Judge:
    """The loss on text that is not learnt from."""

    def judge(weights: dict[str, Tensor], step: int) -> dict[str, float]:
        held = score(config, weights, validation, recipe.window(step)).loss
        return {"validation_loss": held}

    return judge
