"""The series of models with parallel streams: a few steps make them, and the shipped ones are its
own."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from engine.core.clock import WallClock
from engine.core.errors import BadInput
from engine.core.paths import dataset
from engine.models.footprint import parameter_count
from engine.models.loading.find import find, series, shipped
from engine.recipes.stream_series import RECIPE, each, kinds_of, make_series


def test_a_few_steps_go_all_the_way_and_what_is_there_is_not_made_again(tmp_path: Path) -> None:
    library = tmp_path / "library"
    library.mkdir()
    for number in range(40):
        (library / f"m{number}.py").write_text(f"def f{number}(x):\n    return x + {number}\n" * 9)
    how = RECIPE, tmp_path / "made", lambda event: None, WallClock(), True, library
    out = make_series(*how)
    told = json.loads((out / "recipe.json").read_text())
    assert set(told["validation_loss"]) == {"p1", "p2", "wide", "double"}
    assert not list(out.glob("*.safetensors"))
    before = {path: path.stat().st_mtime_ns for path in out.glob("*/model.safetensors")}
    make_series(*how)
    assert before == {path: path.stat().st_mtime_ns for path in out.glob("*/model.safetensors")}
    with pytest.raises(BadInput, match="begun by other settings"):
        make_series(*how[:4], False, library)


def test_plain_rivals_are_as_large_as_they_are_said_to_be() -> None:
    size = {kind: parameter_count(config) for kind, config in kinds_of(RECIPE).items()}
    assert size["p1"] < size["p2"] < size["p4"] <= size["wide"] < 1.03 * size["p4"]
    assert 2 * size["p1"] <= size["double"] < 2.03 * size["p1"]


def test_the_shipped_series_is_whole_and_told_apart_from_models_of_its_own() -> None:
    names = {f"{RECIPE.name}/{kind}-{seed}" for seed, kind, _ in each(RECIPE)}
    own = {name for name in series() if name.startswith(f"{RECIPE.name}/")}
    assert names == own and not names & set(shipped())
    facts = json.loads((dataset(f"models/{RECIPE.name}") / "recipe.json").read_text())
    for kind, config in kinds_of(RECIPE).items():
        assert find(f"{RECIPE.name}/{kind}-0").config == replace(config, dtype="float16")
        assert facts["parameters"][kind] == parameter_count(config)
        assert len(facts["validation_loss"][kind]) == RECIPE.seeds
