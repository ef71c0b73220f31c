"""A recipe for a diffusion model of Catch's frames, and its distillation to few steps.

The teacher learns to say the clean frames of a film whose frames each have a level of noise, the
later ones the noisier, as sampling has them. The distilled model then learns to say at a level what
it says itself one teacher's step later (consistency distillation, arXiv 2303.01469).
"""

from collections.abc import Mapping
from functools import cache
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from safetensors.torch import save_file
from torch import Tensor

from engine.core.clock import Clock
from engine.core.config import knob, update
from engine.core.writing import written
from engine.diffusion.frames.film import Film, Staircase
from engine.diffusion.frames.game import ACTIONS, SIZE, allowed, film, keys
from engine.diffusion.frames.model import (
    BACK,
    FILES,
    SHIPPED,
    FrameModel,
    embedded,
    extra_shapes,
    load_frames,
    numbers,
)
from engine.diffusion.frames.run import engine_for
from engine.models.config import ModelConfig
from engine.models.layers import norm
from engine.models.parameters import outer_parameters, roles
from engine.models.reference import blocks, ordered
from engine.recipes.begin import begin
from engine.recipes.folder import write_json
from engine.recipes.recipe import Shape
from engine.training.loop.checkpoint import remove_checkpoint
from engine.training.loop.settings import Training
from engine.training.loop.single_process import SingleProcess
from engine.training.loop.training_loop import Emit, training_loop
from engine.training.losses.language import fresh_weights

FRAMES = 6  # of a film
NOISE = 0.3  # share of films whose last frame is noise alone
AHEAD = 2.0  # most by which a frame is cleaner than the next: half of the films see clean ones
AWAY = 1 << 32  # seeds from here on are of films that training never draws
Films = tuple[Tensor, Tensor, Tensor, Tensor]  # clean rows, noise, levels, actions


class FramesRecipe(Shape):
    """A small transformer, its training and its distillation; `training.tokens` over the rows of a
    film are the films of a step."""

    name: str = knob(doc="Name of the model and its folder")
    about: str = knob("", "What it is for, one line")
    distilling: Training = knob(Training(), "How it is distilled")
    grid: int = knob(8, "Teacher's steps from noise to clean", low=1, high=64, unit="steps")


def schedule(steps: int, rate: float) -> Training:
    return Training(
        steps=steps, warmup=50, decay=steps // 2, rate=rate, tokens=1536, context=48,
        long_context=48, weight_decay=0.01, precision="float32", report=50, evaluate=500,
        checkpoint=250,
    )  # fmt: skip


RECIPE = FramesRecipe(
    name=SHIPPED,
    about="A very small diffusion model of Catch: the next frame from those before and the action",
    hidden=64,
    layers=3,
    heads=4,
    kv_heads=4,
    head_dim=16,
    width=176,
    training=schedule(3000, 3e-3),
    distilling=schedule(1000, 1e-3),
)
SHORT = {"steps": 2, "warmup": 1, "decay": 1, "tokens": 96, "evaluate": 2}
FAST = {f"{part}.{k}": v for part in ("training", "distilling") for k, v in SHORT.items()}


@cache
def frames_recipes() -> dict[str, FramesRecipe]:
    """Recipes of frame models by name."""
    return {RECIPE.name: RECIPE}


def make_frames(
    recipe: FramesRecipe, out: Path, emit: Emit, clock: Clock, fast: bool = False
) -> Path:
    """Train the teacher, distil it, measure and write both; `out`. Resumes from a checkpoint."""
    recipe = update(recipe, FAST) if fast else recipe
    config = recipe.llama(len(ACTIONS))
    begin(out, recipe)
    checkpoint = out / "checkpoint.safetensors"
    write_json(out / "config.json", config.raw)
    weights = begun(config, recipe.training.seed)
    if not (out / FILES["teacher"]).exists():
        teach(recipe.training, config, weights, checkpoint, emit, clock)
        write(out / FILES["teacher"], weights)
    teacher = dict(load_frames("teacher", out).weights)
    weights = {name: weight.clone() for name, weight in teacher.items()}
    distil(recipe, config, weights, teacher, checkpoint, emit, clock)
    write(out / FILES["distilled"], weights)
    tried = 1 if fast else 20
    facts = {
        "name": recipe.name,
        "about": recipe.about,
        "command": f"workbench train {recipe.name}",
        "parameters": sum(weight.numel() for weight in weights.values()),
        "steps": recipe.training.steps + recipe.distilling.steps,
        "seed": recipe.training.seed,
        "frames_allowed_by_steps": {
            name: {steps: right(load_frames(name, out), steps, tried) for steps in (1, 2, 4, 16)}
            for name in FILES
        },
    }
    write_json(out / "recipe.json", facts)
    remove_checkpoint(checkpoint)
    return out


def begun(config: ModelConfig, seed: int) -> dict[str, Tensor]:
    """Fresh weights of the transformer and of what frames need beside."""
    weights, chance = fresh_weights(config, seed), torch.Generator().manual_seed(seed)
    for name, shape in extra_shapes(config.hidden).items():
        large = 1.0 if name == "frames.rows" else 0.1  # places are told apart before noise is
        weights[name] = torch.randn(shape, generator=chance) * large
    return weights


def write(path: Path, weights: dict[str, Tensor]) -> None:
    halved = {name: weight.detach().half().contiguous() for name, weight in weights.items()}
    with written(path, "the model") as part:
        save_file(halved, part, metadata={"format": "pt"})


def frames_at_once(
    config: ModelConfig, w: Mapping[str, Tensor], x_BFTN: Tensor, t_BF: Tensor, actions_BF: Tensor
) -> Tensor:
    """The clean rows, [B, F, T, N], of sequences of frames; a frame sees BACK before it."""
    count = x_BFTN.shape[1]
    at_S = torch.arange(count * SIZE)
    frame_S = at_S // SIZE
    ago_SS = frame_S[:, None] - frame_S
    x_BSC = embedded(w, x_BFTN, t_BF, actions_BF).flatten(1, 2)
    order = ordered(config, x_BSC, at_S[None], ((ago_SS >= 0) & (ago_SS <= BACK))[None])
    x_BSC = blocks(config, w, x_BSC, range(config.layers), order)
    outer = roles([p for p in outer_parameters(config) if p.name in w], w)
    x_BSC = norm(config, x_BSC, outer, "norm")
    return F.linear(x_BSC, w["frames.output"]).unflatten(1, (count, SIZE))


def teach(
    training: Training, config: ModelConfig, weights: dict[str, Tensor], checkpoint: Path,
    emit: Emit, clock: Clock,
) -> None:  # fmt: skip
    """Train `weights` to say the clean frames."""

    def loss(weights: dict[str, Tensor], step: int) -> tuple[Tensor, int]:
        films = films_of(training, training.seed, step)
        return clean_loss(config, weights, films), films[0][..., 0].numel()

    def judge(weights: dict[str, Tensor], step: int) -> dict[str, float]:
        with torch.inference_mode():
            films = films_of(training, AWAY, step)
            return {"validation_loss": float(clean_loss(config, weights, films))}

    learner = SingleProcess(weights, training, loss, checkpoint)
    training_loop(learner, training, judge, emit=emit, clock=clock)
    remove_checkpoint(checkpoint)


def distil(
    recipe: FramesRecipe, config: ModelConfig, weights: dict[str, Tensor],
    teacher: dict[str, Tensor], checkpoint: Path, emit: Emit, clock: Clock,
) -> None:  # fmt: skip
    """Train `weights` to say at a level what they say one step of the teacher later."""

    def loss(weights: dict[str, Tensor], step: int) -> tuple[Tensor, int]:
        films = films_of(recipe.distilling, recipe.training.seed + 1, step)
        x0, noise, t_BF, actions = films
        x_t, later_BF = noisy(x0, noise, t_BF), (t_BF - 1 / recipe.grid).clamp(min=0)
        with torch.no_grad():
            clean = frames_at_once(config, teacher, x_t, t_BF, actions)
            share = (later_BF / t_BF.clamp(min=1e-6))[..., None, None]
            x_later = torch.where(of(t_BF) > 0, clean + share * (x_t - clean), x0)
            said = frames_at_once(config, weights, x_later, later_BF, actions)
            target = torch.where(of(later_BF) > 0, said, x_later)
        found = frames_at_once(config, weights, x_t, t_BF, actions)
        return squared(found, target, t_BF), x0[..., 0].numel()

    learner = SingleProcess(weights, recipe.distilling, loss, checkpoint)
    training_loop(learner, recipe.distilling, lambda *_: {}, emit=emit, clock=clock)


def of(t_BF: Tensor) -> Tensor:
    """A frame's level for each of its numbers."""
    return t_BF[..., None, None]


def noisy(x0: Tensor, noise: Tensor, t_BF: Tensor) -> Tensor:
    return (1 - of(t_BF)) * x0 + of(t_BF) * noise


def squared(found: Tensor, target: Tensor, t_BF: Tensor) -> Tensor:
    """The mean squared difference over frames that have noise."""
    off_BF = (found - target).square().mean((-2, -1))
    return (off_BF * (t_BF > 0)).sum() / (t_BF > 0).sum().clamp(min=1)


def clean_loss(config: ModelConfig, weights: dict[str, Tensor], films: Films) -> Tensor:
    x0, noise, t_BF, actions = films
    found = frames_at_once(config, weights, noisy(x0, noise, t_BF), t_BF, actions)
    return squared(found, x0, t_BF)


def films_of(training: Training, seed: int, step: int) -> Films:
    """Films of a step: a frame is noisier than the one before it by as much along the film."""
    chance = np.random.default_rng([seed, step])
    count = max(1, training.tokens // (FRAMES * SIZE))
    actions = np.stack([keys(FRAMES, 0.5, chance) for _ in range(count)])
    shown = np.stack([film(own, chance) for own in actions])
    last = np.where(chance.random(count) < NOISE, 1.0, chance.random(count))
    apart = AHEAD * chance.random(count)
    t_BF = np.clip(last[:, None] - apart[:, None] * np.arange(FRAMES)[::-1], 0, 1)
    x0 = numbers(torch.from_numpy(shown))
    noise = torch.from_numpy(chance.standard_normal(x0.shape).astype(np.float32))
    return x0, noise, torch.from_numpy(t_BF).float(), torch.from_numpy(actions)


def right(model: FrameModel, steps: int, films: int) -> float:
    """The share of frames that the game may show, each seeing clean frames alone."""
    found = []
    for seed in range(AWAY, AWAY + films):
        chance = np.random.default_rng(seed)
        actions = keys(BACK + 16, 0.8, chance).tolist()
        first, how = film(np.array(actions[:BACK]), chance), Staircase(steps, steps, 0, seed)
        played = Film(engine_for(model, how, lambda event: None), model, how, first, actions)
        before = first[-1]
        for action in actions[BACK:]:
            shown = played.show(action).cells
            found.append(allowed(before, action, shown))
            before = shown
    return float(np.mean(found))
