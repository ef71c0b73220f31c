"""One call makes a Hugging Face folder; the small setting takes the whole way in seconds."""

import json
from pathlib import Path

import pytest

from engine.core.config import update
from engine.core.errors import BadInput
from engine.core.events import AnyEvent, Level
from engine.recipes.folder import saved_weights
from engine.recipes.language_models import RECIPES, reproduce
from tests.one_thread import one_thread
from tests.turn import RECIPES as OURS


@pytest.fixture
def sources(tmp_path: Path) -> Path:
    """A small made library: enough files that some are held out."""
    folder = tmp_path / "library"
    folder.mkdir()
    for n in range(80):
        lines = [f"def function_{n}_{m}(self, value={m}):\n    return value\n" for m in range(20)]
        (folder / f"module_{n}.py").write_text("\n".join(lines))
    return folder


@pytest.mark.turns(1, *OURS)
def test_a_fast_run_writes_a_whole_folder(tmp_path: Path, sources: Path, full: bool) -> None:
    events: list[AnyEvent] = []
    with one_thread():
        model = reproduce("stdlib-5m", tmp_path / "stdlib-5m", events.append, True, root=sources)
    draft = tmp_path / "stdlib-draft-1m"  # trained first, beside it
    assert sorted(path.name for path in model.iterdir()) == [
        "README.md",
        "config.json",
        "generation_config.json",
        "model.safetensors",
        "recipe.json",
        "tokenizer.json",
        "tokenizer_config.json",
        "validation.txt",
    ]
    curve = [e.value for e in events if isinstance(e, Level) and e.name == "loss"]
    assert curve[-1] < curve[0]
    facts = json.loads((model / "recipe.json").read_text())
    assert 0 < facts["greedy_agreement"] <= 1
    assert (draft / "tokenizer.json").read_bytes() == (model / "tokenizer.json").read_bytes()
    config, weights = saved_weights(model)
    assert config.hidden == 256 and sum(w.numel() for w in weights.values()) == facts["parameters"]
    if not full:  # losses beside a teacher are tried in tests/engine/training/losses
        return
    with one_thread():  # its teacher and what it starts from lie beside it by now
        taught = reproduce(
            "stdlib-draft-distilled", tmp_path / "stdlib-draft-distilled", events.append, True,
            root=sources,
        )  # fmt: skip
    told = json.loads((taught / "recipe.json").read_text())
    assert (
        0 <= told["own_text_greedy_agreement"] <= 1
        and "stdlib-5m" in (taught / "README.md").read_text()
    )


def test_an_unknown_recipe_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="no such recipe; .*stdlib-5m"):
        reproduce("stdlib-7b", tmp_path, lambda event: None)


def test_recipes_are_checked_values() -> None:
    with pytest.raises(BadInput, match="training.rate"):
        update(RECIPES["stdlib-5m"], {"training.rate": 0.0})
