"""Further trainings of shipped recipes: found again, told apart, the same by the same seed."""

import json

import pytest

from engine.core.config import update
from engine.core.errors import BadInput
from engine.models.loading.find import beside
from engine.recipes.example_recipe import FAST, example_recipes
from workbench.trainings import trained_again
from workbench.trainings.trained_again import FACTS, SAME, SHIPPED, in_order, kept, train_again

NAME = "square-queue-170k"
WEIGHTS = "model.safetensors"


@pytest.fixture
def short(monkeypatch):
    """The recipe with very few steps; what it is now can be changed."""
    small = {**FAST, "training.steps": 2, "training.tokens": 256}
    recipes = {NAME: update(example_recipes()[NAME], small)}
    monkeypatch.setattr(trained_again, "example_recipes", lambda: recipes)
    return recipes


def test_a_training_is_found_again_and_another_recipe_is_another(short, tmp_path):
    told = []
    place = train_again(tmp_path, NAME, 1, tell=told.append)
    assert kept(tmp_path, NAME, 1) == place == tmp_path / "1" / NAME
    assert train_again(tmp_path, NAME, 1, tell=told.append) == place
    assert told == [f"training {NAME} from seed 1 …"]
    assert not list(place.glob("checkpoint*"))
    assert json.loads((place / FACTS).read_text())["cpu_seconds"] > 0
    first = (place / WEIGHTS).read_bytes()
    train_again(tmp_path, NAME, 1, fresh=True)
    assert (place / WEIGHTS).read_bytes() == first
    other = train_again(tmp_path, NAME, 2)
    assert (other / WEIGHTS).read_bytes() != first
    short[NAME] = update(short[NAME], {"training.steps": 3})
    assert kept(tmp_path, NAME, 1) is None


def test_a_rival_lies_beside_what_is_held_against_it(tmp_path):
    own, rival = tmp_path / "1" / NAME, tmp_path / "1" / "running-sum-400k"
    own.mkdir(parents=True)
    assert beside(str(own), rival.name) == rival.name  # none there: the shipped one
    rival.mkdir()
    assert beside(str(own), rival.name) == str(rival)
    assert beside(NAME, rival.name) == rival.name


def test_what_goes_on_from_another_says_from_which():
    names = ("ledger-batch-700k", "ledger-streaming-700k", "ledger-700k")
    assert in_order(names)[0] == "ledger-700k"
    assert trained_again._facts(names[0], 1, names)["begun"] == SAME
    assert trained_again._facts(names[0], 1, names[:1])["begun"] == SHIPPED
    assert trained_again._facts("ledger-700k", 1, names)["begun"] == ""
    with pytest.raises(BadInput, match="no recipe that can be trained again"):
        trained_again._facts("stdlib-5m", 1, ())
