"""The series of models with feed-forwards of two sizes: a few steps make them, and the shipped ones
are its own."""

import json
from dataclasses import replace
from pathlib import Path

import torch

from engine.core.clock import WallClock
from engine.core.paths import dataset
from engine.inference.oracle.search import ways
from engine.models.duo.routes import BIG, NONE
from engine.models.footprint import parameter_count
from engine.models.loading.find import find, series
from engine.recipes.duo_series import RECIPE, drawn, expected, make_duo, shapes


def test_a_few_steps_go_all_the_way_and_what_is_there_is_not_made_again(tmp_path: Path) -> None:
    library = tmp_path / "library"
    library.mkdir()
    for number in range(40):
        (library / f"m{number}.py").write_text(f"def f{number}(x):\n    return x + {number}\n" * 9)
    how = RECIPE, tmp_path / "made", lambda event: None, WallClock(), True, library
    out = make_duo(*how)
    told = json.loads((out / "recipe.json").read_text())
    assert set(told["validation_loss"]) == {"plain", "big_in_every_layer", "router"}
    assert not list(out.glob("*.safetensors"))
    before = {path: path.stat().st_mtime_ns for path in out.glob("*/model.safetensors")}
    make_duo(*how)
    assert before == {path: path.stat().st_mtime_ns for path in out.glob("*/model.safetensors")}


def test_the_shipped_series_is_whole() -> None:
    names = {f"{RECIPE.name}/{kind}-{seed}" for kind in ("duo", "plain")
             for seed in range(RECIPE.seeds)}  # fmt: skip
    assert names == {name for name in series() if name.startswith(f"{RECIPE.name}/")}
    facts = json.loads((dataset(f"models/{RECIPE.name}") / "recipe.json").read_text())
    for kind, config in zip(("duo", "plain"), shapes(RECIPE), strict=True):
        assert find(f"{RECIPE.name}/{kind}-0").config == replace(config, dtype="float16")
        assert facts["parameters"][kind] == parameter_count(config)


def test_training_draws_every_module_and_windows_differ_in_how_many_are_big() -> None:
    routes_BTL = drawn(shapes(RECIPE)[0], 0.1, torch.Size((40, 64)), [0, 1])
    share_B = (routes_BTL == BIG).float().mean((1, 2))
    assert 0.06 < float((routes_BTL == NONE).float().mean()) < 0.14
    assert float(share_B.min()) < 0.15 and float(share_B.max()) > 0.75


def test_expected_loss_is_the_mean_over_ways_and_odds_sum_to_one() -> None:
    layers, chance = RECIPE.layers, torch.manual_seed(0)
    for big in range(layers + 1):
        those = ways(layers, big)
        inputs = [torch.randn(5, len(set(level.parent_N.tolist())), 8, generator=chance)
                  for level in those.levels]  # fmt: skip
        weight, bias = torch.randn(layers, layers, 8, generator=chance), torch.zeros(layers, layers)
        whole = torch.ones(5, len(those.routes_WL))
        assert torch.allclose(expected(weight, bias, those, inputs, whole), torch.tensor(1.0))
