"""The shipped models: what they say of themselves is so, and transformers loads them too."""

import ast
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tokenizers import Tokenizer

from engine.core.config import from_dict
from engine.core.paths import dataset
from engine.recipes.folder import saved_weights, slice_stream
from engine.recipes.language_models import RECIPES
from engine.recipes.recipe import Recipe
from engine.training.losses.evaluate import agreement, greedy, score

DRAFT, MODEL, *SPECIALISTS, TAUGHT = (dataset(f"models/{name}") for name in RECIPES)
EACH = pytest.mark.parametrize(
    "folder", [MODEL, DRAFT, *SPECIALISTS, TAUGHT], ids=lambda folder: folder.name
)


def facts(folder: Path) -> dict[str, Any]:
    return json.loads((folder / "recipe.json").read_text())


def held_out_text(folder: Path = MODEL) -> str:
    return (folder / "validation.txt").read_bytes().decode()


@pytest.mark.parametrize(
    "folder", [pytest.param(MODEL, marks=pytest.mark.slow), DRAFT], ids=lambda folder: folder.name
)
def test_the_stated_loss_is_what_the_file_gives(folder: Path) -> None:
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    config, weights = saved_weights(folder)
    stated = facts(folder)
    stream = slice_stream(tokenizer, held_out_text())
    found = score(config, weights, stream, stated["validation_window"]).loss
    assert found == pytest.approx(stated["slice_loss"], abs=2e-3)
    assert stated["validation_loss"] < 4.5
    noise = {name: torch.randn_like(weight) * 0.02 for name, weight in weights.items()}
    assert score(config, noise, stream[:200], 64).loss > stated["slice_loss"] + 2


@EACH
def test_the_folder_was_made_by_the_recipe_of_its_name(folder: Path) -> None:
    stated = facts(folder)
    assert from_dict(Recipe, stated["recipe"]) == RECIPES[folder.name]
    assert stated["command"] == f"workbench train {folder.name}"
    assert stated["command"] in (folder / "README.md").read_text()
    assert f"{stated['validation_loss']:.4f}" in (folder / "README.md").read_text()


@EACH
def test_transformers_loads_it_and_says_the_same(folder: Path) -> None:
    transformers = pytest.importorskip("transformers")
    peer = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    assert peer.generation_config.eos_token_id == tokenizer.eos_token_id == 1
    config, weights = saved_weights(folder)
    ids = tokenizer("def parse_args(", return_tensors="pt").input_ids
    continued = peer.generate(ids, max_new_tokens=24, do_sample=False)[0, ids.shape[1] :]
    assert continued.tolist() == greedy(config, weights, ids[0].tolist(), len(continued))


def test_the_model_writes_something_like_python() -> None:
    tokenizer = Tokenizer.from_file(str(MODEL / "tokenizer.json"))
    config, weights = saved_weights(MODEL)
    prompt = "def parse_args("
    ids = greedy(config, weights, tokenizer.encode(prompt).ids, 24)
    lines = (prompt + tokenizer.decode(ids)).splitlines()
    ast.parse(lines[0] + "\n    pass\n")
    assert lines[1].startswith("    ")


def test_model_and_draft_speak_the_same_tokens() -> None:
    assert (MODEL / "tokenizer.json").read_bytes() == (DRAFT / "tokenizer.json").read_bytes()
    assert facts(MODEL)["corpus"]["digest"] == facts(DRAFT)["corpus"]["digest"]


def test_the_draft_often_guesses_the_models_choice() -> None:
    tokenizer = Tokenizer.from_file(str(MODEL / "tokenizer.json"))
    stream = slice_stream(tokenizer, held_out_text())[:2049]
    found = agreement(saved_weights(DRAFT), saved_weights(MODEL), stream, 512)
    assert found == pytest.approx(facts(MODEL)["greedy_agreement"], abs=0.12)


def test_a_taught_draft_guesses_better_and_most_of_what_its_teacher_writes() -> None:
    stated = facts(TAUGHT)
    assert stated["recipe"]["teacher"] == MODEL.name
    assert (
        stated["greedy_agreement"]
        > stated["draft_agreement"]
        == pytest.approx(facts(MODEL)["greedy_agreement"], abs=0.01)
    )
    assert stated["own_text_greedy_agreement"] > 0.85 > stated["own_text_draft_agreement"]
    teacher, taught, small = (saved_weights(folder) for folder in (MODEL, TAUGHT, DRAFT))
    tokenizer = Tokenizer.from_file(str(MODEL / "tokenizer.json"))
    start = tokenizer.encode("def parse_args(").ids
    own = np.array(start + greedy(*teacher, start, 160), np.uint16)
    found = agreement(taught, teacher, own, len(own))
    assert found > 0.8 and found > agreement(small, teacher, own, len(own))


@pytest.mark.parametrize(
    "folder",
    [SPECIALISTS[0], *(pytest.param(each, marks=pytest.mark.slow) for each in SPECIALISTS[1:])],
    ids=lambda folder: folder.name,
)
def test_a_specialist_knows_text_of_its_kind_better_than_the_draft(folder: Path) -> None:
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    assert (MODEL / "tokenizer.json").read_bytes() == (folder / "tokenizer.json").read_bytes()
    stated, stream = facts(folder), slice_stream(tokenizer, held_out_text(folder))
    window = stated["validation_window"]
    found = score(*saved_weights(folder), stream, window).loss
    assert found == pytest.approx(stated["slice_loss"], abs=2e-3)
    assert found < score(*saved_weights(DRAFT), stream, window).loss


def test_both_together_take_less_than_16_megabytes() -> None:
    files = [path for folder in (MODEL, DRAFT) for path in folder.rglob("*") if path.is_file()]
    assert sum(path.stat().st_size for path in files) < 16_000_000


def test_the_model_predicts_held_out_text_better_than_its_draft() -> None:
    assert facts(MODEL)["validation_loss"] < facts(DRAFT)["validation_loss"]
    assert facts(MODEL)["slice_loss"] < facts(DRAFT)["slice_loss"]
