"""Trains a language model's dense forward on a stream of tokens.

In come a model config, a Training recipe and two uint16 token streams; out come trained float32
weights, with loss and throughput as events on the way. Runs resume from a checkpoint bit for bit.
Shape letters: B windows, T tokens, V vocabulary.
"""

import math
from collections.abc import Callable
from pathlib import Path
from typing import Literal

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor
from torch.optim import AdamW

from engine.core.clock import Clock
from engine.core.config import Config, knob
from engine.core.events import AnyEvent, Level, Mark, Span
from engine.models.config import ModelConfig
from engine.models.load import random_weights
from engine.models.parameters import all_parameters
from engine.models.reference import dense
from engine.training.checkpoint import load_checkpoint, save_checkpoint
from engine.training.evaluate import score
from engine.training.schedule import learning_rate
from engine.training.stream import windows

LANE = "training"
Emit = Callable[[AnyEvent], None]


class Training(Config):
    """How long, how fast and on what shape of batch a language model learns."""

    seed: int = knob(0, "Seed of fresh weights and of the choice of windows", low=0, high=2**31)
    steps: int = knob(2000, "Optimiser steps", low=1, high=1_000_000, unit="steps")
    warmup: int = knob(100, "Steps up to the peak rate", low=0, high=100_000, unit="steps")
    decay: int = knob(400, "Last steps, down to no rate", low=0, high=100_000, unit="steps")
    rate: float = knob(2e-3, "Peak learning rate", low=1e-6, high=1.0, log=True)
    tokens: int = knob(4096, "Tokens in a step", low=8, high=1 << 20, unit="tokens")
    context: int = knob(512, "Window until the decay", low=8, high=8192, unit="tokens")
    long_context: int = knob(1024, "Window in the decay", low=8, high=8192, unit="tokens")
    weight_decay: float = knob(0.1, "AdamW's decay of matrices", low=0.0, high=1.0)
    beta2: float = knob(0.95, "AdamW's memory of squared gradients", low=0.5, high=0.9999)
    clip: float = knob(1.0, "Largest gradient norm", low=1e-3, high=1e3)
    precision: Literal["bfloat16", "float32"] = knob("bfloat16", "Matrix products of the forward")
    report: int = knob(10, "Steps between loss reports", low=1, high=10_000, unit="steps")
    evaluate: int = knob(250, "Steps between validations", low=1, high=100_000, unit="steps")
    checkpoint: int = knob(100, "Steps between checkpoints", low=1, high=100_000, unit="steps")

    def window(self, step: int) -> int:
        """Tokens in each window of this step."""
        return self.long_context if step >= self.steps - self.decay else self.context

    def rows(self, step: int) -> int:
        """Windows in this step."""
        return max(1, self.tokens // self.window(step))

    def tokens_seen(self) -> int:
        """Tokens predicted over all steps, repeated ones counted again."""
        return sum(self.rows(step) * self.window(step) for step in range(self.steps))


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
) -> dict[str, Tensor]:
    """The trained weights, from `start` or else fresh ones.

    Resumes from `checkpoint` where that exists, and keeps it up to date.
    Emits a Span for each stretch between reports, Levels loss, rate, gradient_norm and
    tokens_per_second at each report, validation_loss at each validation, and a Mark at each
    checkpoint.
    """

    def loss(weights: dict[str, Tensor], step: int) -> tuple[Tensor, int]:
        length = recipe.window(step)
        ids = windows(training, recipe.seed, step, recipe.rows(step), length)
        ids_BT = torch.from_numpy(ids)
        with torch.autocast("cpu", torch.bfloat16, enabled=recipe.precision == "bfloat16"):
            logits_BTV = dense(config, weights, ids_BT[:, :-1])
        nats = F.cross_entropy(logits_BTV.float().flatten(0, 1), ids_BT[:, 1:].flatten())
        return nats, recipe.rows(step) * length

    def judge(weights: dict[str, Tensor], step: int) -> dict[str, float]:
        held = score(config, weights, validation, recipe.window(step)).loss
        return {"validation_loss": held}

    weights = start or fresh_weights(config, recipe.seed)
    return descend(weights, recipe, loss, judge, emit=emit, clock=clock, checkpoint=checkpoint)


Loss = Callable[[dict[str, Tensor], int], tuple[Tensor, int]]  # weights, step: mean loss, tokens
Judge = Callable[[dict[str, Tensor], int], dict[str, float]]  # weights, steps done: named levels


def descend(
    weights: dict[str, Tensor],
    recipe: Training,
    loss_of: Loss,
    judge: Judge,
    *,
    emit: Emit,
    clock: Clock,
    checkpoint: Path | None = None,
) -> dict[str, Tensor]:
    """AdamW down any loss, with the resuming and the events of `train`; the trained weights.

    `weights` are updated in place. A resumed run is the uninterrupted one where `loss_of` depends
    on nothing but weights and step.
    """
    optimizer, step = adamw(weights, recipe), 0
    if checkpoint is not None and checkpoint.exists():
        step = load_checkpoint(checkpoint, weights, optimizer)
        emit(Mark(clock.now(), LANE, "resume", f"from step {step} of {checkpoint.name}"))
    began, since, seen = clock.now(), step, 0
    while step < recipe.steps:
        loss, tokens = loss_of(weights, step)
        norm = _step(recipe, step, weights, optimizer, loss)
        seen += tokens
        step += 1
        if step % recipe.report == 0 or step == recipe.steps:
            now = clock.now()
            emit(Span(now, LANE, "steps", began, tag=f"{since}:{step}"))
            levels = {"loss": loss.item(), "rate": optimizer.param_groups[0]["lr"]}
            levels |= {"gradient_norm": norm, "tokens_per_second": seen / max(now - began, 1e-9)}
            for name, value in levels.items():
                emit(Level(now, LANE, name, value))
            began, since, seen = now, step, 0
        if checkpoint is not None and (step % recipe.checkpoint == 0 or step == recipe.steps):
            save_checkpoint(checkpoint, step, weights, optimizer, recipe)
            emit(Mark(clock.now(), LANE, "checkpoint", f"step {step}"))
        if step % recipe.evaluate == 0 or step == recipe.steps:
            for name, value in judge(weights, step).items():
                emit(Level(clock.now(), LANE, name, value))
    return {name: weight.detach() for name, weight in weights.items()}


def adamw(weights: dict[str, Tensor], recipe: Training) -> AdamW:
    """AdamW (Loshchilov and Hutter, arXiv 1711.05101) that decays matrices, not norms or biases."""
    for weight in weights.values():
        weight.requires_grad_()
    matrices = [weight for weight in weights.values() if weight.ndim > 1]
    vectors = [weight for weight in weights.values() if weight.ndim == 1]
    groups = [
        {"params": matrices, "weight_decay": recipe.weight_decay},
        {"params": vectors, "weight_decay": 0.0},
    ]
    return AdamW(groups, lr=recipe.rate, betas=(0.9, recipe.beta2), fused=True)


def _step(
    recipe: Training, step: int, weights: dict[str, Tensor], optimizer: AdamW, loss: Tensor
) -> float:
    """One update by the gradients of `loss`; their norm before clipping."""
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    norm = torch.nn.utils.clip_grad_norm_(weights.values(), recipe.clip)
    rate = learning_rate(step, recipe.steps, recipe.rate, recipe.warmup, recipe.decay)
    for group in optimizer.param_groups:
        group["lr"] = rate
    optimizer.step()
    return norm.item()
