"""The masked-diffusion recipe: a few steps make a folder, and the shipped one is its own."""

import json
from pathlib import Path

import numpy as np
import torch

from engine.core.clock import WallClock
from engine.core.events import AnyEvent, Level
from engine.core.paths import dataset
from engine.diffusion.joints import MASK, VOCAB, draw
from engine.diffusion.model import FOLDER, bidirectional, load_masked
from engine.models.loading.find import shipped
from engine.recipes.language_models import reproduce
from engine.recipes.masked_lists import RECIPE, errors, texts_of
from engine.training.losses.language import fresh_weights


def test_a_few_steps_go_all_the_way(tmp_path: Path) -> None:
    events: list[AnyEvent] = []
    out = reproduce(RECIPE.name, tmp_path / "made", events.append, fast=True, clock=WallClock())
    facts = json.loads((out / "recipe.json").read_text())
    stated = json.loads((dataset(f"{FOLDER}/{RECIPE.name}") / "recipe.json").read_text())
    assert facts["parameters"] == stated["parameters"] and facts["seed"] == stated["seed"]
    assert any(isinstance(e, Level) and e.name == "validation_loss" for e in events)
    assert not (out / "checkpoint.safetensors").exists()
    assert load_masked(out).config.vocab == VOCAB


def test_the_shipped_model_errs_as_its_folder_says_and_no_serving_engine_offers_it() -> None:
    stated = json.loads((dataset(f"{FOLDER}/{RECIPE.name}") / "recipe.json").read_text())
    found = errors(load_masked(), 2)
    for task, nats in stated["error_in_nats_one_token_a_step"].items():
        assert abs(found[task] - nats) < 0.1
    assert RECIPE.name not in shipped()


def test_masks_are_told_from_both_sides() -> None:
    config = RECIPE.llama(VOCAB)
    weights = fresh_weights(config, 0)
    joint = draw("shuffle", 4, np.random.default_rng(0))
    answer_1L = joint.answers_SL[:1]
    shown = [joint.canvas(answer_1L, np.array([[False, False, False, last]])) for last in (0, 1)]
    with torch.inference_mode():
        one, other = (bidirectional(config, weights, torch.from_numpy(x)) for x in shown)
    assert not torch.equal(one[:, -4], other[:, -4]), "the first sees the last"


def test_texts_mask_at_least_one_token_and_hide_nothing_else() -> None:
    tokens, answers, masked = texts_of(RECIPE.training, 0, 3, rows=50)
    length = answers.shape[1]
    shown = tokens[:, -length:]
    assert masked.any(1).all() and (shown[masked] == MASK).all()
    assert torch.equal(shown[~masked], answers[~masked])
    again = texts_of(RECIPE.training, 0, 3, rows=50)[0]
    assert torch.equal(tokens, again)
