"""Reinforces a language model by its own episodes: draw a group for each problem, reward, compare.

In come weights and a way to play groups of episodes; out come weights under which what was better
than its group's mean is likelier. Group-relative policy gradient (GRPO: DeepSeekMath,
arXiv 2402.03300, section 4.1): no value model, clipped ratios, plain torch.
Shape letters: L predictions, G episodes of a group.
"""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.optim import AdamW

from engine.core.clock import Clock
from engine.core.config import Config, knob, to_dict
from engine.core.events import AnyEvent, Level, Mark, Span
from engine.models.config import ModelConfig
from engine.training.data.packing import Example, Packed, packs, spoken
from engine.training.loop.checkpoint import Facts, load_checkpoint, save_checkpoint
from engine.training.loop.resume import require_equal
from engine.training.losses.examples import logits_of

LANE = "training"
Weights = dict[str, Tensor]
Emit = Callable[[AnyEvent], None]


class Reinforcement(Config):
    """How many episodes a step plays and how far it moves the weights."""

    seed: int = knob(0, "Seed of problems and of draws", low=0, high=2**31)
    steps: int = knob(48, "Rounds of playing and learning", low=1, high=100_000, unit="steps")
    problems: int = knob(24, "Problems in a round", low=1, high=4096)
    group: int = knob(8, "Episodes of each problem, compared with each other", low=2, high=256)
    updates: int = knob(2, "Optimiser steps on the episodes of a round", low=1, high=64)
    rate: float = knob(3e-4, "Learning rate at first; falls evenly to nothing", low=1e-7, high=1.0)
    kl: float = knob(0.05, "Weight of the divergence from the first weights", low=0.0, high=10.0)
    clip: float = knob(0.2, "Ratios beyond 1 ± this give no gradient", low=0.01, high=10.0)
    temperature: float = knob(1.0, "Of the draws", low=0.01, high=10.0)
    scale: bool = knob(True, "Divide advantages by their group's deviation")
    gradient: float = knob(1.0, "Largest gradient norm", low=1e-3, high=1e3)
    window: int = knob(160, "Tokens a context may hold", low=8, high=8192, unit="tokens")
    tokens: int = knob(4096, "Tokens in one forward pass", low=64, high=1 << 20, unit="tokens")
    precision: Literal["bfloat16", "float32"] = knob("bfloat16", "Matrix products of the forward")
    checkpoint: int = knob(5, "Rounds between checkpoints", low=1, high=10_000, unit="steps")


class Played(NamedTuple):
    """An episode: its reward and, of each context, tokens, own ones, and their log-probabilities.

    Tokens that the model did not draw (prompts, what others returned) are read and not learnt.
    """

    reward: float
    parts: list[tuple[list[int], list[bool], list[float]]]


Play = Callable[[Weights, int], tuple[list[list[Played]], dict[str, float]]]


class Learnt(NamedTuple):
    """A context to learn from: its own tokens, how likely each was, and how good it was."""

    example: Example
    logprob_L: np.ndarray
    advantage: float


def reinforce(
    config: ModelConfig,
    recipe: Reinforcement,
    weights: Weights,
    play: Play,
    *,
    emit: Emit,
    clock: Clock,
    checkpoint: Path | None = None,
    origin: Facts | None = None,
) -> Weights:
    """The reinforced weights. `play(weights, step)` gives groups of episodes and any figures.
    `origin` says what else but `recipe` makes a checkpoint another run's.

    Emits a Span for each round and Levels reward, gradient_norm, clipped and the figures of `play`.
    """
    step = updates = 0
    said = {**to_dict(recipe), **(origin or {})}
    first = {name: weight.detach().clone() for name, weight in weights.items()}
    for weight in weights.values():
        weight.requires_grad_()
    optimizer = AdamW(
        list(weights.values()), lr=recipe.rate, betas=(0.9, 0.99), weight_decay=0.0, fused=True
    )
    saved = load_checkpoint(checkpoint, weights, optimizer) if checkpoint is not None else None
    if checkpoint is not None and saved is not None:
        require_equal(checkpoint, saved, said)
        step, updates = int(saved.facts["round"]), saved.step
        emit(Mark(clock.now(), LANE, "resume", f"from round {step} of {checkpoint.name}"))
    while step < recipe.steps:
        began = clock.now()
        groups, figures = play(weights, step)
        for group in optimizer.param_groups:
            group["lr"] = recipe.rate * (1 - step / recipe.steps)
        learnt = [one for group in groups for one in compared(group, recipe.scale)]
        order = np.random.default_rng((recipe.seed, step)).permutation(len(learnt))
        for part in np.array_split(order, recipe.updates):
            if len(part):
                some = [learnt[i] for i in part]
                figures |= update(config, recipe, weights, first, optimizer, some)
                updates += 1
        step += 1
        rewards = [played.reward for group in groups for played in group]
        figures["reward"] = float(np.mean(rewards))
        now = clock.now()
        emit(Span(now, LANE, "round", began, tag=f"{step - 1}:{step}"))
        for name, value in figures.items():
            emit(Level(now, LANE, name, value))
        if checkpoint is not None and (step % recipe.checkpoint == 0 or step == recipe.steps):
            facts = {**said, "round": step}
            save_checkpoint(checkpoint, updates, weights, optimizer, facts)
            emit(Mark(clock.now(), LANE, "checkpoint", f"round {step}"))
    return {name: weight.detach() for name, weight in weights.items()}


def compared(group: Sequence[Played], scale: bool = True) -> list[Learnt]:
    """The contexts of a group's episodes with their advantages; nothing where all are as good."""
    advantage_G = advantages([played.reward for played in group], scale)
    found = []
    for played, advantage in zip(group, advantage_G.tolist(), strict=True):
        for tokens, own, logprobs in played.parts:
            example = spoken(tokens, own)
            if advantage and len(example.at_L):
                drawn_L = np.array(logprobs, np.float32)[example.at_L + 1]
                found.append(Learnt(example, drawn_L, advantage))
    return found


def advantages(rewards: Sequence[float], scale: bool = True) -> np.ndarray:
    """Rewards less their mean, over their standard deviation if `scale`; zeros if all are equal."""
    reward_G = np.array(rewards, np.float64)
    over_G = reward_G - reward_G.mean()
    deviation = reward_G.std()
    if not deviation:
        return np.zeros_like(over_G)
    return over_G / deviation if scale else over_G


def update(
    config: ModelConfig,
    recipe: Reinforcement,
    weights: Weights,
    first: Weights,
    optimizer: AdamW,
    learnt: Sequence[Learnt],
) -> dict[str, float]:
    """One optimiser step on these contexts; `first`: the weights not to go far from.

    The gradient's norm, the share of clipped tokens, nats a token away from the first weights.
    """
    total = sum(len(one.logprob_L) for one in learnt)
    optimizer.zero_grad(set_to_none=True)
    clipped, apart = 0, 0.0
    for some in _passes(learnt, recipe.tokens):
        length = max(len(one.example) for one in some)
        packed = next(packs((one.example for one in some), len(some), length))
        logprob_L = _logprobs(config, recipe, weights, packed)
        drawn_L = torch.from_numpy(np.concatenate([one.logprob_L for one in some]))
        counts = torch.tensor([len(one.logprob_L) for one in some])
        advantage_L = torch.tensor([one.advantage for one in some]).repeat_interleave(counts)
        gain_L, beyond = surrogate(logprob_L, drawn_L, advantage_L, recipe.clip)
        loss = -gain_L.sum()
        if recipe.kl:
            with torch.no_grad():
                first_L = _logprobs(config, recipe, first, packed)
            away_L = divergence(logprob_L, first_L)
            loss = loss + recipe.kl * away_L.sum()
            apart += float(away_L.detach().sum())
        (loss / total).backward()
        clipped += beyond
    norm = torch.nn.utils.clip_grad_norm_(weights.values(), recipe.gradient)
    optimizer.step()
    share = {"clipped": clipped / max(1, total), "divergence": apart / max(1, total)}
    return {"gradient_norm": norm.item(), **share}


def surrogate(
    logprob_L: Tensor, drawn_L: Tensor, advantage_L: Tensor, clip: float
) -> tuple[Tensor, int]:
    """The clipped objective of each token and how many were clipped.

    min(r A, clip(r, 1 - c, 1 + c) A) with r the ratio to the policy that drew
    (PPO, arXiv 1707.06347, equation 7).
    """
    ratio_L = (logprob_L - drawn_L).exp()
    free_L = ratio_L * advantage_L
    bound_L = ratio_L.clamp(1 - clip, 1 + clip) * advantage_L
    return torch.minimum(free_L, bound_L), int((bound_L < free_L).sum())


def divergence(logprob_L: Tensor, first_L: Tensor) -> Tensor:
    """An estimate of KL(weights, first) from one drawn token at each place, never below zero.

    r - log r - 1 with r the ratio of the first to the present probability (GRPO, equation 4).
    """
    over_L = first_L - logprob_L
    return over_L.exp() - over_L - 1


def _logprobs(
    config: ModelConfig, recipe: Reinforcement, weights: Weights, packed: Packed
) -> Tensor:
    """Of each packed target, at the temperature of the draws."""
    logits_LV = logits_of(config, weights, packed, recipe.precision) / recipe.temperature
    return logits_LV.log_softmax(-1).gather(1, packed.target_L[:, None])[:, 0]


def _passes(learnt: Sequence[Learnt], tokens: int) -> Iterator[list[Learnt]]:
    """Contexts of alike lengths together, so many as fill a forward pass."""
    held: list[Learnt] = []
    for one in sorted(learnt, key=lambda one: len(one.example)):
        if held and (len(held) + 1) * len(one.example) > tokens:
            yield held
            held = []
        held.append(one)
    if held:
        yield held
