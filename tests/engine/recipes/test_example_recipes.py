"""Recipes that learn from examples: sides stay apart, shipped folders are theirs, a fast run."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch

from engine.core.clock import WallClock
from engine.core.config import from_dict, update
from engine.core.events import AnyEvent, Level
from engine.core.paths import dataset
from engine.models.loading.find import find, shipped
from engine.models.text.tokenizer import Tokenizer
from engine.recipes.example_recipe import ExampleRecipe, example_recipes, make_from_examples
from engine.recipes.folder import saved_weights
from engine.training.losses.examples import example_loss
from tests.turn import RECIPES as OURS

RECIPES = example_recipes()
TURNS = {name: pytest.mark.turns(n, *OURS) for n, name in enumerate(RECIPES)}
SHIPPED = [recipe for name, recipe in RECIPES.items() if name in shipped()]
# Examples: seconds to score; claims rest on them too.
LONG = {"countdown-imitated-serial", "countdown-paths", "part-sums-500k"}
EACH_SHIPPED = pytest.mark.parametrize("recipe", SHIPPED, ids=lambda recipe: recipe.name)


@pytest.mark.parametrize(
    "recipe", [pytest.param(r, marks=TURNS[name]) for name, r in RECIPES.items()], ids=RECIPES
)
def test_examples_fit_and_the_sides_share_none(recipe: ExampleRecipe) -> None:
    tokenizer = recipe.tokenizer()
    sides = [
        [recipe.example(tokenizer, split, number) for number in range(60)]
        for split in ("train", "test")
    ]
    for example in (*sides[0], *sides[1]):
        assert len(example) <= recipe.training.context <= recipe.training.long_context
        assert example.tokens_T.max() < tokenizer.get_vocab_size()
        assert len(example.target_L) == len(example.at_L) == len(example.weight_L) > 0
    texts = [{tuple(example.tokens_T) for example in side} for side in sides]
    assert not texts[0] & texts[1]
    again = recipe.example(tokenizer, "train", 7)
    assert again.tokens_T.tolist() == sides[0][7].tokens_T.tolist()


def test_models_of_one_order_learn_the_same_ledgers_and_differ_in_what_thoughts_see() -> None:
    early, late = RECIPES["ledger-streaming-700k"], RECIPES["ledger-batch-700k"]
    tokenizer = early.tokenizer()
    assert early.training == late.training
    for number in range(40):
        one, two = (recipe.example(tokenizer, "train", number) for recipe in (early, late))
        for name in ("tokens_T", "at_L", "target_L", "positions_T"):
            assert (getattr(one, name) == getattr(two, name)).all()
        assert one.visible_TT is not None and two.visible_TT is not None
        read = int(one.at_L[0])  # the first thought's place, behind all that is read
        said = [tokenizer.id_to_token(int(token)) for token in one.tokens_T]
        ends = [place + 1 for place in range(read) if said[place] == "<read>;"]
        unit = np.cumsum([token == "<think>;" for token in said[read:]])
        assert one.visible_TT[read:, :read].sum(1).tolist() == [ends[u] for u in unit]
        assert two.visible_TT[read:, :read].all()


@EACH_SHIPPED
def test_the_folder_was_made_by_the_recipe_of_its_name(recipe: ExampleRecipe) -> None:
    folder = dataset(f"models/{recipe.name}")
    facts = json.loads((folder / "recipe.json").read_text())
    assert from_dict(type(recipe), facts["recipe"]) == recipe
    card = (folder / "README.md").read_text()
    assert f"workbench train {recipe.name}" in card
    for score in facts["scores"].values():
        assert 0 <= score["low"] <= score["value"] <= score["high"] <= 1 and score["n"] > 0
        assert f"**{score['value']:.1%}**" in card
    assert sum(path.stat().st_size for path in folder.iterdir()) < 2_200_000


@pytest.mark.parametrize(
    "recipe",
    [pytest.param(r, marks=pytest.mark.slow if r.name in LONG else TURNS[r.name]) for r in SHIPPED],
    ids=lambda recipe: recipe.name,
)
def test_the_stated_loss_is_what_the_file_gives(recipe: ExampleRecipe) -> None:
    folder = dataset(f"models/{recipe.name}")
    facts = json.loads((folder / "recipe.json").read_text())
    config, weights = saved_weights(folder)
    tokenizer = Tokenizer(folder).rules
    assert tokenizer.to_str() == recipe.tokenizer().to_str()
    held = [recipe.example(tokenizer, "test", n) for n in range(facts["validation_examples"])]
    longest = max(map(len, held))  # rows no longer than that: their attention costs its square
    found = example_loss(config, weights, held, longest)
    assert found == pytest.approx(facts["validation_loss"], abs=2e-3)
    noise = {name: torch.randn_like(weight) * 0.02 for name, weight in weights.items()}
    assert example_loss(config, noise, held[:32], longest) > found + 0.3


def test_a_fast_run_writes_a_whole_folder(tmp_path: Path) -> None:
    recipe = update(RECIPES["multiply-1m"], {"hidden": 32, "layers": 1, "width": 64})
    events: list[AnyEvent] = []
    folder = make_from_examples(recipe, tmp_path / "small", events.append, WallClock(), fast=True)
    assert sorted(path.name for path in folder.iterdir()) == [
        "README.md",
        "config.json",
        "generation_config.json",
        "model.safetensors",
        "recipe.json",
        "tokenizer.json",
        "tokenizer_config.json",
    ]
    curve = [e.value for e in events if isinstance(e, Level) and e.name == "loss"]
    assert curve
    facts = json.loads((folder / "recipe.json").read_text())
    assert facts["scores"] and facts["samples"]
    assert find(str(folder)).config.eos == (1,)
