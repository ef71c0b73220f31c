"""A recipe for a model that learns from examples of a task, and the way from it to a folder.

A concrete recipe says its tokenizer, its examples by number and how the finished folder is scored.
"""

import importlib
import pkgutil
import platform
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer
from torch import Tensor

from engine.core.clock import Clock
from engine.core.config import knob, to_dict, update
from engine.recipes.begin import going_on, origin, require_made
from engine.recipes.example_card import card
from engine.recipes.folder import saved_weights, write_json, write_model
from engine.recipes.recipe import Shape
from engine.tasks.task import Split
from engine.training.data.packing import Example
from engine.training.loop.checkpoint import remove_checkpoint
from engine.training.loop.training_loop import Emit
from engine.training.losses.examples import Source, cross_entropy, example_loss, train_examples

FOLDER = "engine.recipes.from_examples"
CHECKPOINT = "checkpoint.safetensors"
HELD_OUT, FEW = 256, 16  # examples of the test side, for the loss; few to see that it works
FAST = {
    "training.precision": "float32",  # narrow products are slow where a processor has none
    "training.steps": 4,
    "training.warmup": 1,
    "training.decay": 2,
    "training.tokens": 512,
    "training.evaluate": 4,
}


@dataclass(frozen=True, slots=True)
class Score:
    """A share or mean over `n` problems nobody learnt from, with its 95% interval."""

    value: float
    low: float
    high: float
    n: int


class ExampleRecipe(Shape):
    """A model, the examples it learns from and how it is judged."""

    name: str = knob(doc="Name of the model and its folder")
    about: str = knob("", "What it is for, one line")

    @abstractmethod
    def tokenizer(self) -> Tokenizer:
        """Of this model, its special tokens included."""

    @abstractmethod
    def example(self, tokenizer: Tokenizer, split: Split, number: int) -> Example:
        """The example of a number on that side, always the same one."""

    def nats(self, logits_LV: Tensor, target_L: Tensor) -> Tensor:
        """The loss of each prediction: cross-entropy, where a recipe says nothing else."""
        return cross_entropy(logits_LV, target_L)

    @abstractmethod
    def scores(self, folder: Path, fast: bool) -> dict[str, Score]:
        """What the model in `folder` reaches on test problems; `fast`: with few of them."""

    @abstractmethod
    def samples(self, folder: Path) -> Sequence[str]:
        """A few test problems as the model reads and answers them."""


@cache
def example_recipes() -> dict[str, ExampleRecipe]:
    """Recipes by the name of their models."""
    package = importlib.import_module(FOLDER)
    names = sorted(module.name for module in pkgutil.iter_modules(package.__path__))
    found = [importlib.import_module(f"{FOLDER}.{name}").RECIPE for name in names]
    return {recipe.name: recipe for recipe in found}


def make_from_examples(
    recipe: ExampleRecipe, out: Path, emit: Emit, clock: Clock, fast: bool = False
) -> Path:
    """Train, measure and write one recipe; `out`. Resumes from the checkpoint in `out`.

    A model it goes on from lies beside `out` or is trained there first.
    """
    recipe = update(recipe, FAST) if fast else recipe
    start = out.parent / recipe.start if recipe.start else None
    if start is not None and not (start / "recipe.json").exists():
        make_from_examples(example_recipes()[recipe.start], start, emit, clock, fast)
    if start is not None:
        require_made(start, example_recipes()[recipe.start], fast)
    held_out = learn(recipe, out, start, FEW if fast else HELD_OUT, emit, clock)
    measure(recipe, out, held_out, fast)
    remove_checkpoint(out / CHECKPOINT)
    return out


def learn(
    recipe: ExampleRecipe, out: Path, start: Path | None, count: int, emit: Emit, clock: Clock
) -> list[Example]:
    """Train a recipe and write the model into `out`, beside its checkpoint; so many examples that
    nobody learnt from, by which it was judged. `start`: the folder of the model it goes on from."""
    tokenizer = recipe.tokenizer()
    config = recipe.llama(tokenizer.get_vocab_size())
    out.mkdir(parents=True, exist_ok=True)
    held_out = [recipe.example(tokenizer, "test", number) for number in range(count)]
    weights = train_examples(
        config,
        recipe.training,
        source(recipe, tokenizer),
        emit=emit,
        clock=clock,
        checkpoint=out / CHECKPOINT,
        start=going_on(config, recipe.training.seed, saved_weights(start)[1]) if start else None,
        held_out=held_out,
        nats=recipe.nats,
        origin=origin(recipe),
    )
    write_model(out, config, weights, tokenizer)
    return held_out


def source(recipe: ExampleRecipe, tokenizer: Tokenizer) -> Source:
    """The examples that a recipe learns from."""
    return lambda number: recipe.example(tokenizer, "train", number)


def measure(recipe: ExampleRecipe, folder: Path, held_out: Sequence[Example], fast: bool) -> None:
    """Score the model in `folder` and write `recipe.json` and the card."""
    facts = _facts(recipe, folder, held_out, fast)
    write_json(folder / "recipe.json", facts)
    (folder / "README.md").write_text(card(facts), encoding="utf-8")


def _facts(
    recipe: ExampleRecipe, folder: Path, held_out: Sequence[Example], fast: bool
) -> dict[str, Any]:
    config, weights = saved_weights(folder)
    return {
        "name": recipe.name,
        "about": recipe.about,
        "command": f"workbench train {recipe.name}",
        "parameters": sum(weight.numel() for weight in weights.values()),
        "entries": config.vocab,
        "python": platform.python_version(),
        "torch": torch.__version__,
        "tokens_seen": recipe.training.tokens_seen(),
        "validation_loss": example_loss(config, weights, held_out, config.max_positions),
        "validation_examples": len(held_out),
        "scores": {name: asdict(score) for name, score in recipe.scores(folder, fast).items()},
        "samples": list(recipe.samples(folder)),
        "recipe": to_dict(recipe),
        **({"start": recipe.start} if recipe.start else {}),
        **({"paths": recipe.paths} if recipe.paths else {}),
    }
