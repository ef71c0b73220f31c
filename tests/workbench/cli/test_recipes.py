"""`workbench train` by the name of a recipe: each goes from its examples to a scored folder."""

import json
from functools import lru_cache
from pathlib import Path
from shutil import copytree

import pytest

from engine.core.paths import dataset
from engine.models.loading.find import find
from engine.recipes import trace_pairs
from engine.recipes.example_recipe import example_recipes
from tests.one_thread import one_thread
from tests.turn import RECIPES as OURS
from workbench.cli.main import main

RECIPES = example_recipes()
turns = pytest.mark.turns
QUICK = "square-queue-170k"  # the one whose training takes minutes


def trained(name: str, place: Path, *more: str) -> dict:
    """What the recipe's folder tells of itself; what it goes on from lies beside it."""
    if RECIPES[name].start:
        copytree(dataset(f"models/{RECIPES[name].start}"), place / RECIPES[name].start)
    with one_thread():
        assert main(["train", name, "--out", str(place / name), *more]) == 0
    assert find(str(place / name)).config.vocab
    return json.loads((place / name / "recipe.json").read_text())


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=turns(n, *OURS)) for n, name in enumerate(RECIPES)]
)
def test_a_recipe_goes_all_the_way_in_a_few_steps(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trace_pairs, "BLOCK", 4)  # questions sampled together
    monkeypatch.setattr(trace_pairs, "_block", lru_cache(trace_pairs._block.__wrapped__))
    facts = trained(name, tmp_path, "--fast")
    stated = json.loads(dataset(f"models/{name}/recipe.json").read_text())
    assert len(facts["scores"]) == len(stated["scores"])
    assert facts["parameters"] == stated["parameters"] and facts["samples"]
    assert (tmp_path / name / "README.md").read_text().startswith("---\n")
    assert not (tmp_path / name / "checkpoint.safetensors").exists()


@pytest.mark.slow
def test_a_whole_training_gives_the_shipped_models_scores_again(tmp_path: Path) -> None:
    facts = trained(QUICK, tmp_path)
    stated = json.loads(dataset(f"models/{QUICK}/recipe.json").read_text())
    assert facts["recipe"] == stated["recipe"]
    for name, score in stated["scores"].items():
        assert facts["scores"][name]["high"] >= score["low"], name
