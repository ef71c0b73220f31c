"""A recipe for a model that goes on from another by reinforcement, and the way to its folder."""

import platform
from dataclasses import asdict
from pathlib import Path
from typing import Any, Literal

import torch

from engine.core.clock import Clock
from engine.core.config import Config, knob, to_dict, update
from engine.core.limits import file_digest
from engine.models.text.tokenizer import Tokenizer
from engine.recipes.begin import origin, require_made
from engine.recipes.countdown.rounds import rounds
from engine.recipes.countdown.scores import samples, scores
from engine.recipes.example_recipe import (
    CHECKPOINT,
    Score,
    example_recipes,
    make_from_examples,
)
from engine.recipes.folder import saved_weights, write_json, write_model
from engine.recipes.reinforce_card import card
from engine.training.loop.checkpoint import remove_checkpoint
from engine.training.losses.reinforce import Emit, Reinforcement, reinforce

FAST = {"training.steps": 2, "training.problems": 2, "training.group": 4, "training.checkpoint": 1}


class ReinforcedRecipe(Config):
    """A model that begins as another one and learns from its own right and wrong answers."""

    name: str = knob(doc="Name of the model and its folder")
    about: str = knob("", "What it is for, one line")
    start: str = knob("", "The model it begins as")
    search: Literal["parallel", "serial"] = knob(
        "parallel", "How its episodes search: by children, or in one context"
    )
    training: Reinforcement = knob(make=Reinforcement, doc="How it is reinforced")


BUDGET = Reinforcement(steps=48, problems=24, group=8, updates=2, rate=3e-4, kl=0.05)
COUNTDOWN = ReinforcedRecipe(
    name="countdown-reinforced",
    about="A very small Llama that spawns and joins threads to search for Countdown's answers",
    start="countdown-imitated",
    training=BUDGET,
)
SERIAL = ReinforcedRecipe(
    name="countdown-reinforced-serial",
    about="A very small Llama that searches for Countdown's answers in one context",
    start="countdown-imitated",
    search="serial",
    training=BUDGET,
)


def reinforced_recipes() -> dict[str, ReinforcedRecipe]:
    """Recipes by the name of their models."""
    return {recipe.name: recipe for recipe in (COUNTDOWN, SERIAL)}


def make_reinforced(
    recipe: ReinforcedRecipe, out: Path, emit: Emit, clock: Clock, fast: bool = False
) -> Path:
    """Train, measure and write one recipe; `out`. Resumes from the checkpoint in `out`.

    The model it begins as lies beside `out` or is trained there first.
    """
    recipe = update(recipe, FAST) if fast else recipe
    start = out.parent / recipe.start
    if not (start / "recipe.json").exists():
        make_from_examples(example_recipes()[recipe.start], start, emit, clock, fast)
    require_made(start, example_recipes()[recipe.start], fast)
    learn_by_reward(recipe, out, start, emit, clock)
    facts = _facts(recipe, out, fast)
    write_json(out / "recipe.json", facts)
    (out / "README.md").write_text(card(facts), encoding="utf-8")
    remove_checkpoint(out / CHECKPOINT)
    return out


def learn_by_reward(
    recipe: ReinforcedRecipe, out: Path, start: Path, emit: Emit, clock: Clock
) -> None:
    """Reinforce the model in `start` and write what becomes of it into `out`, with its tokenizer,
    beside its checkpoint."""
    config, weights = saved_weights(start)
    words = Tokenizer(start).rules  # hours before they are written: they may not be there
    out.mkdir(parents=True, exist_ok=True)
    weights = reinforce(
        config, recipe.training, weights, rounds(config, recipe.training, recipe.search),
        emit=emit, clock=clock, checkpoint=out / CHECKPOINT,
        origin=origin(recipe, file_digest(start / "model.safetensors")),
    )  # fmt: skip
    write_model(out, config, weights, words)


def _facts(recipe: ReinforcedRecipe, folder: Path, fast: bool) -> dict[str, Any]:
    config, weights = saved_weights(folder)
    return {
        "name": recipe.name,
        "about": recipe.about,
        "command": f"workbench train {recipe.name}",
        "parameters": sum(weight.numel() for weight in weights.values()),
        "entries": config.vocab,
        "python": platform.python_version(),
        "torch": torch.__version__,
        "episodes": recipe.training.steps * recipe.training.problems * recipe.training.group,
        "scores": {name: asdict(Score(*score)) for name, score in scores(folder, fast).items()},
        "samples": list(samples(folder)),
        "recipe": to_dict(recipe),
    }
