"""What a recipe goes on from has to be of this very recipe."""

import json

import numpy as np
import pytest

from engine.core.config import to_dict, update
from engine.core.errors import BadInput
from engine.core.paths import dataset
from engine.recipes.begin import begin, origin, require_made
from engine.recipes.language_models import DRAFT, FAST, FORMATS, RECIPES, WINDOWS
from engine.recipes.reinforce_recipe import COUNTDOWN, SERIAL

TEXT = np.arange(9, dtype=np.uint16)


def test_a_checkpoint_tells_its_recipe_and_its_text():
    assert WINDOWS.training == FORMATS.training and COUNTDOWN.training == SERIAL.training
    ours = origin(WINDOWS, TEXT)
    assert ours["recipe"] == WINDOWS.name
    assert ours == origin(update(WINDOWS, {"about": "", "training.report": 1}), TEXT.copy())
    for other in (origin(FORMATS, TEXT), origin(WINDOWS, TEXT[:-1]), origin(WINDOWS)):
        assert other["made_of"] != ours["made_of"]
    assert origin(COUNTDOWN, "of a start") != origin(SERIAL, "of a start")
    assert origin(COUNTDOWN, "of a start") != origin(COUNTDOWN, "of another")


def test_models_begun_by_other_settings_are_not_taken_for_those_of_a_series(tmp_path):
    out = tmp_path / "series"
    for _ in range(2):
        begin(out, DRAFT, TEXT)
    for other, text in ((update(DRAFT, FAST), TEXT), (DRAFT, TEXT + 1)):
        with pytest.raises(BadInput, match="begun by other settings"):
            begin(out, other, text)


def test_a_model_made_in_a_few_steps_is_not_grown_from(tmp_path):
    few = {"recipe": to_dict(update(DRAFT, FAST))}
    (tmp_path / "recipe.json").write_text(json.dumps(few))
    with pytest.raises(BadInput, match="made with texts = 8, its recipe has 1280"):
        require_made(tmp_path, DRAFT, fast=False)
    require_made(tmp_path, DRAFT, fast=True)
    for torn in ("", "{", "[]", '{"recipe": 3}'):
        (tmp_path / "recipe.json").write_text(torn)
        with pytest.raises(BadInput, match="says no settings"):
            require_made(tmp_path, DRAFT, fast=False)


def test_the_shipped_models_were_made_by_what_their_recipes_say():
    for name in filter(None, (each.draft for each in RECIPES.values())):
        require_made(dataset(f"models/{name}"), RECIPES[name], fast=False)
