"""Further trainings of shipped recipes: found again, told apart, the same by the same seed."""

import json

import pytest

from engine.core.config import update
from engine.core.errors import BadInput
from engine.diffusion.model import folder_of, load_masked
from engine.models.loading.find import beside
from engine.recipes import catch_frames, masked_lists
from engine.recipes.example_recipe import FAST, example_recipes
from engine.training.loop.alone import alone
from workbench.cli.main import INTERRUPTED, main
from workbench.trainings import trained_again
from workbench.trainings.trained_again import (
    BEGUN,
    FACTS,
    SAME,
    SHIPPED,
    in_order,
    kept,
    train_again,
)

NAME, LISTS, FRAMES = "square-queue-170k", "lists-diffusion-150k", "catch-frames-150k"
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


def test_who_stops_it_reads_that_it_goes_on_from_there(tmp_path, monkeypatch, capsys):
    def stopped(*given):
        raise KeyboardInterrupt

    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr(trained_again, "learn", stopped)
    assert main(["check", "hogwild", "--claim", "fewer-steps", "--trainings", "5"]) == INTERRUPTED
    assert capsys.readouterr().err == (
        f"training {NAME} from seed 1 …\n"
        "stopped; what was trained is kept: the same command goes on from there\n"
    )


def test_two_do_not_train_the_same(short, tmp_path):
    with alone(tmp_path / "1" / NAME), pytest.raises(BadInput, match="another training writes"):
        train_again(tmp_path, NAME, 1)


def test_frames_go_on_from_a_taught_model_of_the_same_recipe_alone(tmp_path, monkeypatch):
    """The teacher's file is what says that it need not be taught any more."""
    recipes = {FRAMES: update(catch_frames.RECIPE, catch_frames.FAST)}
    monkeypatch.setattr(trained_again, "frames_recipes", lambda: recipes)
    monkeypatch.setattr(catch_frames, "right", lambda *given: 1.0)
    taught, teach = [], catch_frames.teach
    monkeypatch.setattr(catch_frames, "teach", lambda *given: taught.append(teach(*given)))
    whole, place = train_again(tmp_path / "whole", FRAMES, 1), tmp_path / "1" / FRAMES

    def stopped(*given):
        raise KeyboardInterrupt

    with monkeypatch.context() as at_distilling:
        at_distilling.setattr(catch_frames, "distil", stopped)
        with pytest.raises(KeyboardInterrupt):
            train_again(tmp_path, FRAMES, 1)
    assert kept(tmp_path, FRAMES, 1) is None and (place / BEGUN).exists() and len(taught) == 2
    assert train_again(tmp_path, FRAMES, 1) == place and len(taught) == 2
    for name in ("teacher.safetensors", "model.safetensors"):
        assert (place / name).read_bytes() == (whole / name).read_bytes()
    recipes[FRAMES] = update(recipes[FRAMES], {"training.rate": 1e-3})
    train_again(tmp_path, FRAMES, 1)
    assert len(taught) == 3 and not (place / BEGUN).exists()


def test_a_model_of_lists_is_trained_from_other_seeds(tmp_path, monkeypatch):
    recipes = {LISTS: update(masked_lists.RECIPE, masked_lists.FAST)}
    monkeypatch.setattr(trained_again, "masked_recipes", lambda: recipes)
    monkeypatch.setattr(masked_lists, "errors", lambda *given: {})
    one, two = (train_again(tmp_path, LISTS, seed) for seed in (1, 2))
    assert (one / WEIGHTS).read_bytes() != (two / WEIGHTS).read_bytes()
    assert load_masked(folder_of(str(one))).config.vocab
    with pytest.raises(BadInput, match="only its architecture is known; give lists-diffusion"):
        folder_of("llama-3-8b")


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
