"""Further trainings of shipped recipes: each the same in all but its seed, kept by seed and name.

A training lies in `FOLDER/SEED/NAME` with `training.json`, which says what it is of, so that a
second call finds it and a recipe that has changed is trained anew. Models of one seed lie beside
one another, as a rival lies beside what is held against it.
"""

import json
import time
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any

from engine.core.clock import WallClock
from engine.core.config import to_dict, update
from engine.core.errors import BadInput
from engine.core.limits import parse_json, read_bytes
from engine.core.paths import dataset
from engine.diffusion.frames.model import FILES
from engine.kernels.threads import torch_threads
from engine.recipes.catch_frames import FramesRecipe, frames_recipes, make_frames
from engine.recipes.example_recipe import CHECKPOINT, FEW, ExampleRecipe, example_recipes, learn
from engine.recipes.folder import write_json
from engine.recipes.masked_lists import ListsRecipe, make_masked, masked_recipes
from engine.recipes.reinforce_recipe import ReinforcedRecipe, learn_by_reward, reinforced_recipes
from engine.training.loop.alone import alone
from engine.training.loop.checkpoint import remove_checkpoint
from engine.training.loop.training_loop import Emit
from workbench.trainings.how_far import HowFar

AnyRecipe = ExampleRecipe | ReinforcedRecipe | ListsRecipe | FramesRecipe

FACTS, BEGUN = "training.json", "training.begun.json"  # of one that has ended; of one that has not
SHIPPED, SAME = "the shipped model", "that of the same seed"  # what a training went on from


def recipe_of(name: str, seed: int) -> AnyRecipe | None:
    """The recipe of a shipped model with another seed; None where it is made some other way."""
    kinds = (example_recipes, reinforced_recipes, masked_recipes, frames_recipes)
    recipe = next((kind()[name] for kind in kinds if name in kind()), None)
    return None if recipe is None else update(recipe, {"training.seed": seed})


def in_order(names: Collection[str]) -> list[str]:
    """Models so that each comes after the one that it goes on from."""
    ordered: list[str] = []

    def put(name: str) -> None:
        recipe = recipe_of(name, 0)
        if recipe is not None and recipe.start in names:
            put(recipe.start)
        if name not in ordered:
            ordered.append(name)

    for name in names:
        put(name)
    return ordered


def kept(folder: Path, name: str, seed: int, along: Collection[str] = ()) -> Path | None:
    """Where exactly this training lies; None where it was not made here yet. `along`: models that
    are trained again with it: what goes on from one of them goes on from that of its own seed."""
    place = folder / str(seed) / name
    try:
        facts = _facts(name, seed, along)
    except BadInput:
        return None
    return place if _same(place / FACTS, facts) else None


def train_again(
    folder: Path,
    name: str,
    seed: int,
    along: Collection[str] = (),
    tell: Callable[[str], None] = lambda text: None,
    fresh: bool = False,
) -> Path:
    """The model's training from that seed, made now where it is not kept or `fresh` asks for it.

    On one thread, so that the same seed gives the same weights on a machine. Goes on from the
    checkpoint of one that was stopped. Raises BadInput where the model has no such recipe.
    """
    found = None if fresh else kept(folder, name, seed, along)
    if found is not None:
        return found
    facts, recipe = _facts(name, seed, along), recipe_of(name, seed)
    assert recipe is not None  # _facts raises
    start = None
    if recipe.start in along:
        start = train_again(folder, recipe.start, seed, along, tell)
    elif recipe.start:
        start = dataset(f"models/{recipe.start}")
    place = folder / str(seed) / name
    with alone(place, "*.json"):  # whatever lies there is of a training
        if fresh or not _same(place / BEGUN, facts):
            for stale in place.iterdir():
                stale.unlink()
        write_json(place / BEGUN, facts)
        what = f"training {name} from seed {seed}"
        tell(f"{what} …")
        begun = time.process_time()
        with torch_threads(1):
            _learn(recipe, place, start, HowFar(what, _steps(recipe, place), tell))
        write_json(place / FACTS, {**facts, "cpu_seconds": round(time.process_time() - begun, 1)})
        remove_checkpoint(place / CHECKPOINT)
        (place / BEGUN).unlink()
    return place


def _learn(recipe: AnyRecipe, place: Path, start: Path | None, emit: Emit) -> None:
    """Train it into `place`, or go on with that."""
    if isinstance(recipe, ReinforcedRecipe):
        assert start is not None
        learn_by_reward(recipe, place, start, emit, WallClock())
    elif isinstance(recipe, ListsRecipe):
        make_masked(recipe, place, emit, WallClock())
    elif isinstance(recipe, FramesRecipe):
        make_frames(recipe, place, emit, WallClock())
    else:
        learn(recipe, place, start, FEW, emit, WallClock())


def _steps(recipe: AnyRecipe, place: Path) -> int:
    """Those of its training, from the first to the last."""
    if not isinstance(recipe, FramesRecipe):
        return recipe.training.steps
    is_taught = (place / FILES["teacher"]).exists()
    return recipe.distilling.steps + (0 if is_taught else recipe.training.steps)


def _same(path: Path, facts: dict[str, Any]) -> bool:
    """Whether a file tells of exactly this training."""
    try:
        told = parse_json(read_bytes(path, "text_bytes"), path)
        return {key: told[key] for key in facts} == facts
    except (OSError, BadInput, ValueError, KeyError, TypeError):
        return False


def _facts(name: str, seed: int, along: Collection[str]) -> dict[str, Any]:
    recipe = recipe_of(name, seed)
    if recipe is None:
        raise BadInput(f"model {name!r}: made by no recipe that can be trained again by its seed")
    begun = "" if not recipe.start else SAME if recipe.start in along else SHIPPED
    plain: dict[str, Any] = json.loads(json.dumps({"recipe": to_dict(recipe), "begun": begun}))
    return plain  # as a file gives it back
