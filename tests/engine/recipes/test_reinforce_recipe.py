"""The reinforced model: its folder is its recipe's, and both can be made again."""

import json
from pathlib import Path
from shutil import copytree

import pytest
import torch

from engine.core.clock import WallClock
from engine.core.config import from_dict
from engine.core.events import AnyEvent, Level
from engine.core.paths import dataset
from engine.recipes.folder import saved_weights
from engine.recipes.language_models import reproduce
from engine.recipes.reinforce_recipe import COUNTDOWN, ReinforcedRecipe, reinforced_recipes
from tests.turn import RECIPES as OURS

FILES = [
    "README.md",
    "config.json",
    "generation_config.json",
    "model.safetensors",
    "recipe.json",
    "tokenizer.json",
    "tokenizer_config.json",
]


def test_the_shipped_folder_was_made_by_its_recipe():
    for name, recipe in reinforced_recipes().items():
        folder = dataset(f"models/{name}")
        facts = json.loads((folder / "recipe.json").read_text())
        assert from_dict(ReinforcedRecipe, facts["recipe"]) == recipe
        card = (folder / "README.md").read_text()
        assert f"workbench train {name}" in card
        for score in facts["scores"].values():
            assert score["low"] < score["value"] < score["high"]
            assert f"**{score['value']:.1%}**" in card
        assert sum(path.stat().st_size for path in folder.iterdir()) < 2_200_000


def test_it_scores_higher_by_threads_than_what_it_began_as():
    stated = [
        json.loads((dataset(f"models/{name}") / "recipe.json").read_text())["scores"]
        for name in (COUNTDOWN.start, COUNTDOWN.name)
    ]
    threads = next(name for name in stated[0] if name.startswith("Spawning"))
    assert stated[1][threads]["low"] > stated[0][threads]["high"]


@pytest.mark.turns(2, *OURS)
def test_a_fast_run_goes_on_from_the_model_beside_it(tmp_path: Path):
    copytree(dataset(f"models/{COUNTDOWN.start}"), tmp_path / COUNTDOWN.start)
    events: list[AnyEvent] = []
    folder = reproduce(
        COUNTDOWN.name, tmp_path / COUNTDOWN.name, events.append, True, clock=WallClock()
    )
    assert sorted(path.name for path in folder.iterdir()) == FILES
    figures = {event.name for event in events if isinstance(event, Level)}
    assert {"reward", "children", "critical", "divergence", "gradient_norm"} <= figures
    before, after = (
        saved_weights(tmp_path / name)[1] for name in (COUNTDOWN.start, COUNTDOWN.name)
    )
    assert before.keys() == after.keys()
    assert any(not torch.equal(before[name], after[name]) for name in before)
