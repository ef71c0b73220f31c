"""The frames recipe: a few steps make a folder, and the shipped one is its own."""

import json
from pathlib import Path

import torch

from engine.core.clock import WallClock
from engine.core.paths import dataset
from engine.diffusion.frames.model import FILES, load_frames
from engine.models.loading.find import shipped
from engine.recipes.catch_frames import BACK, RECIPE, films_of, noisy, right
from engine.recipes.language_models import reproduce


def test_a_few_steps_go_all_the_way(tmp_path: Path) -> None:
    out = reproduce(RECIPE.name, tmp_path / "made", lambda event: None, True, clock=WallClock())
    facts = json.loads((out / "recipe.json").read_text())
    stated = json.loads((dataset(f"diffusion/{RECIPE.name}") / "recipe.json").read_text())
    assert facts["parameters"] == stated["parameters"] and facts["seed"] == stated["seed"]
    assert not (out / "checkpoint.safetensors").exists()
    taught, distilled = (load_frames(name, out).weights for name in ("teacher", "distilled"))
    assert taught.keys() == distilled.keys()
    assert any(not torch.equal(taught[name], distilled[name]) for name in taught)


def test_the_shipped_models_are_as_right_as_their_folder_says() -> None:
    stated = json.loads((dataset(f"diffusion/{RECIPE.name}") / "recipe.json").read_text())
    for name in FILES:
        assert (
            abs(right(load_frames(name), 4, 4) - stated["frames_allowed_by_steps"][name]["4"]) < 0.2
        )
    assert RECIPE.name not in shipped()


def test_later_frames_of_a_film_are_the_noisier() -> None:
    x0, noise, t_BF, _ = films_of(RECIPE.training, 0, 3)
    assert (t_BF.diff(dim=1) >= 0).all() and (t_BF[:, -1] > 0).all()
    assert (t_BF[:, -BACK:] == 1).any() and (t_BF[:, 0] == 0).any()
    x = noisy(x0, noise, t_BF)
    assert torch.equal(x[t_BF == 0], x0[t_BF == 0]) and torch.equal(x[t_BF == 1], noise[t_BF == 1])
