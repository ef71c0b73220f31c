"""The shipped language models as values, and the one call that makes each of them again.

In comes a recipe's name, out comes a Hugging Face folder: weights in float16, tokenizer, model card
and `recipe.json` with everything measured on the way.
"""

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from tokenizers import Tokenizer
from torch import Tensor

from engine.core.clock import Clock, WallClock
from engine.core.config import update
from engine.core.errors import BadInput
from engine.core.limits import read_text
from engine.core.names import suggest
from engine.recipes.begin import origin, require_made
from engine.recipes.catch_frames import frames_recipes, make_frames
from engine.recipes.duo_series import duo_recipes, make_duo
from engine.recipes.example_recipe import example_recipes, make_from_examples
from engine.recipes.folder import Trained, saved_weights, write_folder
from engine.recipes.grow import grow
from engine.recipes.masked_lists import make_masked, masked_recipes
from engine.recipes.recipe import Recipe
from engine.recipes.reinforce_recipe import make_reinforced, reinforced_recipes
from engine.recipes.stream_series import make_series, series_recipes
from engine.recipes.teacher_text import continuations
from engine.training.data.corpus import gather, standard_library, those
from engine.training.data.tokenizer import train_tokenizer
from engine.training.data.windows import token_stream
from engine.training.loop.alone import alone
from engine.training.loop.checkpoint import remove_checkpoint
from engine.training.loop.training_loop import Emit
from engine.training.losses.language import Training, fresh_weights, train

DRAFT = Recipe(
    name="stdlib-draft-1m",
    about="A very small Llama that drafts for stdlib-5m",
    hidden=128,
    layers=2,
    heads=4,
    kv_heads=2,
    width=384,
    training=Training(steps=2000, warmup=100, decay=600, rate=4e-3),
)
MAIN = Recipe(
    name="stdlib-5m",
    about="A small Llama that writes Python",
    draft="stdlib-draft-1m",
    hidden=256,
    layers=6,
    heads=8,
    kv_heads=4,
    width=704,
    training=Training(steps=600, warmup=60, decay=250, rate=1.5e-3, context=256, long_context=512),
)
WINDOWS = update(
    DRAFT,
    {
        "name": "stdlib-draft-windows",
        "about": "A drafter for stdlib-5m that knows programs with windows",
        "draft": DRAFT.name,
        "only": ("idlelib/", "tkinter/", "turtle"),
        "training": Training(steps=200, warmup=20, decay=80, rate=1e-3),
    },
)
FORMATS = update(
    WINDOWS,
    {
        "name": "stdlib-draft-formats",
        "about": "A drafter for stdlib-5m that knows mail, markup and the web",
        "only": ("email/", "html/", "http/", "json/", "urllib/", "wsgiref/", "xml", "tomllib/"),
    },
)
DISTILLED = update(
    DRAFT,
    {
        "name": "stdlib-draft-distilled",
        "about": "A drafter for stdlib-5m that learnt from what stdlib-5m writes",
        "draft": DRAFT.name,
        "teacher": MAIN.name,
        "training": Training(
            steps=1200, warmup=50, decay=480, rate=2e-3, context=256, long_context=512
        ),
    },
)
RECIPES = {recipe.name: recipe for recipe in (DRAFT, MAIN, WINDOWS, FORMATS, DISTILLED)}
# Minutes become seconds: enough to see the loss fall, far from a useful model.
FAST = {
    "training.steps": 20,
    "training.warmup": 2,
    "training.decay": 5,
    "training.tokens": 256,
    "training.context": 64,
    "training.long_context": 128,
    "training.evaluate": 20,
    "training.precision": "float32",  # small products are no faster in bfloat16, or much slower
    "completion": 4,
    "texts": 8,
}


def reproduce(
    name: str,
    out: Path,
    emit: Emit,
    fast: bool = False,
    *,
    root: Path | None = None,
    clock: Clock | None = None,
) -> Path:
    """Train the recipe `name` into the folder `out`; the folder.

    A recipe of text works on the running Python's standard library unless `root` names another. An
    interrupted run goes on from `checkpoint.safetensors` in `out`, which is gone at the end. The
    draft a model grows from, and its teacher, lie beside `out` or are trained there first. `fast`
    runs a few small steps. Raises BadInput for an unknown name, and for a folder that another
    training writes into.
    """
    kinds: list[tuple[Mapping[str, Any], Callable[..., Path]]] = [
        (RECIPES, partial(_make_of_text, root=root)),
        (example_recipes(), make_from_examples),
        (reinforced_recipes(), make_reinforced),
        (masked_recipes(), make_masked),
        (frames_recipes(), make_frames),
        (series_recipes(), partial(make_series, root=root)),
        (duo_recipes(), partial(make_duo, root=root)),
    ]
    for recipes, makes in kinds:
        if name in recipes:
            with alone(out, "recipe.json"):
                return makes(recipes[name], out, emit, clock or WallClock(), fast)
    known = [each for recipes, _ in kinds for each in recipes]
    raise BadInput(f"recipe {name!r}: no such recipe; {suggest(name, known)}")


def _make_of_text(
    recipe: Recipe, out: Path, emit: Emit, clock: Clock, fast: bool, root: Path | None
) -> Path:
    recipe = update(recipe, FAST) if fast else recipe
    root = root or standard_library()
    for other in filter(None, (recipe.draft, recipe.teacher)):
        beside = out.parent / other
        if not (beside / "recipe.json").exists():
            reproduce(other, beside, emit, fast, root=root, clock=clock)
        require_made(beside, RECIPES[other], fast)
    return make(recipe, out, emit, root, clock)


def make(recipe: Recipe, out: Path, emit: Emit, root: Path, clock: Clock) -> Path:
    """Gather, tokenize, train, measure and write one recipe."""
    corpus = gather(root)
    tokenizer = train_tokenizer((source.text for source in corpus.training), recipe.entries)
    if recipe.only:
        corpus = those(corpus, recipe.only)
    training = token_stream(tokenizer, corpus.training)
    validation = token_stream(tokenizer, corpus.validation)
    config, teacher = recipe.model(), None
    if recipe.teacher:
        folder = out.parent / recipe.teacher
        teacher = saved_weights(folder)
        own = continuations(folder, training, recipe.texts, recipe.training)
        training = np.concatenate([own, training[: len(own) // 3]])
    out.mkdir(parents=True, exist_ok=True)
    checkpoint = out / "checkpoint.safetensors"
    weights = train(
        config,
        recipe.training,
        training,
        validation,
        emit=emit,
        clock=clock,
        checkpoint=checkpoint,
        start=grown(recipe, out.parent / recipe.draft, tokenizer) if recipe.draft else None,
        teacher=teacher,
        origin=origin(recipe, training),
    )
    trained = Trained(recipe, config, weights, tokenizer, corpus, len(training), validation)
    write_folder(out, trained)
    remove_checkpoint(checkpoint)
    return out


def grown(recipe: Recipe, draft: Path, tokenizer: Tokenizer) -> dict[str, Tensor]:
    """First weights of a recipe that grows from the model in the folder `draft`.

    Raises BadInput where that model speaks other tokens.
    """
    known = read_text(draft / "tokenizer.json", "tokenizer_bytes")
    if Tokenizer.from_str(known).to_str() != tokenizer.to_str():
        raise BadInput(f"{draft}: trained on another text than this Python's; delete it")
    small, weights = saved_weights(draft)
    config = recipe.model()
    return grow(small, weights, config, fresh_weights(config, recipe.training.seed))
