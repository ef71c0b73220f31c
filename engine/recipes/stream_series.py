"""A series of very small models with one, two and four parallel streams, and plain ones beside.

Each is trained on the same text for the same tokens from several seeds, so that streams can be held
against the plain model they are made of (`p1`), one that is wider by as many parameters as four
streams have of their own (`wide`), and one of about twice the size (`double`).
"""

from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Annotated

from pydantic import Field

from engine.core.clock import Clock
from engine.core.config import knob, update
from engine.models.config import ModelConfig
from engine.models.families import parse
from engine.models.footprint import parameter_count
from engine.recipes.begin import begin, origin
from engine.recipes.folder import saved_weights, whole, write_json, write_model
from engine.recipes.recipe import Shape
from engine.training.data.corpus import gather, standard_library
from engine.training.data.tokenizer import train_tokenizer
from engine.training.data.windows import token_stream
from engine.training.loop.checkpoint import remove_checkpoint
from engine.training.loop.settings import Training
from engine.training.loop.training_loop import Emit
from engine.training.losses.evaluate import score
from engine.training.losses.language import train

SERIES = "streams"
Count = Annotated[int, Field(ge=2, le=64)]
ENTRIES = 258  # every byte, and the two marks
STEP = 8  # of the feed-forward's width


class SeriesRecipe(Shape):
    """A very small Llama, how many streams it is tried with, and its training."""

    name: str = knob(doc="Name of the series and of its folder")
    about: str = knob("", "What it is for, one line")
    seeds: int = knob(5, "Models of each kind", low=1, high=64)
    counts: tuple[Count, ...] = knob((2, 4), "Streams beside one")
    prefix: int = knob(16, "Tokens of a stream's prefix", low=1, high=256, unit="tokens")
    judged: int = knob(40_000, "Tokens that each is judged by", low=64, high=1 << 24)


RECIPE = SeriesRecipe(
    name=SERIES,
    about="Very small models of Python with one, two and four parallel streams, and plain rivals",
    hidden=32,
    layers=2,
    heads=2,
    kv_heads=1,
    head_dim=16,
    width=88,
    training=Training(
        steps=500, warmup=50, decay=170, rate=6e-3, tokens=1024, context=64, long_context=64,
        precision="float32", report=50, evaluate=500, checkpoint=250,
    ),
)  # fmt: skip
FAST = {"training.steps": 2, "training.warmup": 1, "training.decay": 1, "training.tokens": 128,
        "training.evaluate": 2, "seeds": 1, "counts": (2,), "judged": 256}  # fmt: skip


@cache
def series_recipes() -> dict[str, SeriesRecipe]:
    """Recipes of series by name."""
    return {RECIPE.name: RECIPE}


def kinds_of(recipe: SeriesRecipe) -> dict[str, ModelConfig]:
    """The series' models by kind: streams by their number, then plain ones by their size."""
    plain = recipe.llama(ENTRIES)
    found = {"p1": plain}
    for count in recipe.counts:
        streams = {"parscale_n": count, "parscale_n_tokens": recipe.prefix}
        found[f"p{count}"] = parse({**plain.raw, **streams, "parscale_attn_smooth": 0.1})
    most = parameter_count(found[f"p{max(recipe.counts)}"])
    found["wide"] = widened(recipe, most)
    found["double"] = widened(recipe, 2 * parameter_count(plain))
    return found


def widened(recipe: SeriesRecipe, parameters: int) -> ModelConfig:
    """The plain model with the least feed-forward that makes it so large at least."""
    width = recipe.width
    while parameter_count(update(recipe, {"width": width}).llama(ENTRIES)) < parameters:
        width += STEP
    return update(recipe, {"width": width}).llama(ENTRIES)


def make_series(
    recipe: SeriesRecipe, out: Path, emit: Emit, clock: Clock, fast: bool = False,
    root: Path | None = None,
) -> Path:  # fmt: skip
    """Train, judge and write every model of the series that is not there yet; `out`."""
    recipe = update(recipe, FAST) if fast else recipe
    corpus = gather(root or standard_library())
    tokenizer = train_tokenizer((), ENTRIES)
    training = token_stream(tokenizer, corpus.training)
    validation = token_stream(tokenizer, corpus.validation)[: recipe.judged]
    begin(out, recipe, training)
    losses: dict[str, list[float]] = {kind: [] for kind in kinds_of(recipe)}
    for seed, kind, config in each(recipe):
        folder = out / f"{kind}-{seed}"
        if not whole(folder):
            learning = update(recipe.training, {"seed": seed})
            checkpoint = out / f"{kind}-{seed}.safetensors"
            weights = train(
                config, learning, training, validation[:4096], emit=emit, clock=clock,
                checkpoint=checkpoint, origin=origin(recipe, training),
            )  # fmt: skip
            write_model(folder, config, weights, tokenizer)
            remove_checkpoint(checkpoint)
        losses[kind].append(score(*saved_weights(folder), validation, recipe.training.context).loss)
    facts = {
        "name": recipe.name,
        "about": recipe.about,
        "command": f"workbench train {recipe.name}",
        "parameters": {kind: parameter_count(c) for kind, c in kinds_of(recipe).items()},
        "tokens_seen": recipe.training.tokens_seen(),
        "corpus": corpus.digest,
        "validation_loss": losses,
    }
    write_json(out / "recipe.json", facts)
    return out


def each(recipe: SeriesRecipe) -> Iterator[tuple[int, str, ModelConfig]]:
    """Seed by seed, one of each kind."""
    for seed in range(recipe.seeds):
        for kind, config in kinds_of(recipe).items():
            yield seed, kind, config
