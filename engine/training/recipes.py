"""The shipped language models as values, and the one call that makes each of them again.

In comes a recipe's name, out comes a Hugging Face folder: weights in float16, tokenizer, model card
and `recipe.json` with everything measured on the way.
"""

from pathlib import Path

from engine.core.clock import Clock, WallClock
from engine.core.config import update
from engine.core.errors import BadInput
from engine.training.corpus import gather, standard_library
from engine.training.folder import Trained, write_folder
from engine.training.language import Emit, Training, train
from engine.training.recipe import Recipe
from engine.training.stream import token_stream
from engine.training.tokenizer import train_tokenizer

MAIN = Recipe(
    name="stdlib-5m",
    about="A small Llama that writes Python",
    training=Training(steps=2000, warmup=100, decay=400, rate=2e-3, long_context=1024),
)
DRAFT = Recipe(
    name="stdlib-draft-1m",
    about="A smaller one that drafts for it",
    drafts_for="stdlib-5m",
    hidden=128,
    layers=2,
    heads=4,
    head_dim=32,
    width=384,
    training=Training(steps=3000, warmup=100, decay=600, rate=4e-3, long_context=1024),
)
RECIPES = {recipe.name: recipe for recipe in (MAIN, DRAFT)}
# Minutes become seconds: enough to see the loss fall, far from a useful model.
FAST = {
    "training.steps": 20,
    "training.warmup": 2,
    "training.decay": 5,
    "training.tokens": 256,
    "training.context": 64,
    "training.long_context": 128,
    "training.evaluate": 20,
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

    Works on the running Python's standard library unless `root` names another. An interrupted run
    goes on from `checkpoint.safetensors` in `out`, which is gone at the end. `fast` runs a few
    small steps. A draft is compared with its model where that lies beside `out`. Raises BadInput
    for an unknown name.
    """
    if name not in RECIPES:
        raise BadInput(f"recipe {name!r}: no such recipe; one of: {', '.join(RECIPES)}")
    recipe = update(RECIPES[name], FAST) if fast else RECIPES[name]
    return make(recipe, out, emit, root or standard_library(), clock or WallClock())


def make(recipe: Recipe, out: Path, emit: Emit, root: Path, clock: Clock) -> Path:
    """Gather, tokenize, train, measure and write one recipe."""
    corpus = gather(root)
    tokenizer = train_tokenizer((source.text for source in corpus.training), recipe.entries)
    training = token_stream(tokenizer, corpus.training)
    validation = token_stream(tokenizer, corpus.validation)
    config = recipe.model()
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
    )
    trained = Trained(recipe, config, weights, tokenizer, corpus, len(training), validation)
    write_folder(out, trained)
    checkpoint.unlink()
    return out
