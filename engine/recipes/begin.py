"""What a recipe's training begins with: another model's weights, and what lies there already.

It says what the other says: words and paths that the other did not have come after its own, with
fresh embeddings. A checkpoint, and the models of a series that are done, have to be of this recipe.
"""

import hashlib
import json
from pathlib import Path

import numpy as np
from torch import Tensor

from engine.core.config import Config, to_dict
from engine.core.errors import BadInput
from engine.core.limits import parse_json, read_bytes
from engine.core.writing import write_text
from engine.models.config import ModelConfig
from engine.training.losses.language import fresh_weights

BEGUN = "begun.json"
APART = ("about", "training")  # the one decides nothing, the other is told by itself
AGAIN = "delete it, or train into another folder"
Weights = dict[str, Tensor]


def going_on(config: ModelConfig, seed: int, other: Weights) -> Weights:
    """Weights of `config`: the other's where it has any, fresh ones beyond.

    Raises BadInput where the two differ in more than words and paths.
    """
    found = {}
    for name, fresh in fresh_weights(config, seed).items():
        old = other.get(name)
        if old is None and ".path_" not in name:
            raise BadInput(f"going on from another model: it has no {name}")
        if old is not None:
            if old.shape[1:] != fresh.shape[1:] or len(old) > len(fresh):
                raise BadInput(
                    f"going on from another model: {name} has shape {list(old.shape)}, "
                    f"not {list(fresh.shape)}"
                )
            fresh = fresh.clone()
            fresh[: len(old)] = old
        found[name] = fresh
    return found


def origin(recipe: Config, *learnt: np.ndarray | str) -> dict[str, str]:
    """What a checkpoint says of the recipe it is of, besides how it learns: neither another's nor
    one of another text is gone on from. `learnt`: the tokens it learns from, or a digest."""
    told = {
        key: value for key, value in to_dict(recipe).items() if key not in ("about", "training")
    }
    found = hashlib.sha256(json.dumps(told, sort_keys=True).encode())
    for part in learnt:
        found.update(part.encode() if isinstance(part, str) else np.ascontiguousarray(part).data)
    return {"recipe": str(told["name"]), "made_of": found.hexdigest()[:16]}


def begin(out: Path, recipe: Config, *learnt: np.ndarray | str) -> None:
    """Make `out`, for models one after the other. Raises BadInput where those there were begun by
    other settings, as with a few steps for each, or on another text: they would be taken as done.
    """
    out.mkdir(parents=True, exist_ok=True)
    everything = json.dumps(to_dict(recipe), sort_keys=True)
    ours = json.dumps(origin(recipe, *learnt, everything)) + "\n"
    place = out / BEGUN
    if not place.exists():
        write_text(place, ours, "what its models are made of")
    elif read_bytes(place, "config_bytes") != ours.encode():
        raise BadInput(
            f"{out}: its models were begun by other settings or on another text; {AGAIN}"
        )


def require_made(folder: Path, recipe: Config, fast: bool) -> None:
    """Raises BadInput where the model in `folder`, which another goes on from, was made by other
    settings than its recipe's. A few steps to see that all works (`fast`) go on from any."""
    if fast:
        return
    try:
        told = parse_json(read_bytes(folder / "recipe.json", "config_bytes"), "recipe.json")
        theirs = {**told["recipe"], **told["recipe"]["training"]}
    except (OSError, ValueError, KeyError, TypeError):
        raise BadInput(f"{folder}: its recipe.json says no settings; {AGAIN}") from None
    told = json.loads(json.dumps(to_dict(recipe)))
    for name, ours in {**told, **told["training"]}.items():
        if name not in APART and theirs.get(name, ours) != ours:
            raise BadInput(
                f"{folder}: made with {name} = {theirs[name]}, its recipe has {ours}; {AGAIN}"
            )
