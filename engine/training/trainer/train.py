"""Trains a model of any family the engine loads on a token file, and writes it as a folder.

In comes a TrainerConfig; out come a Hugging Face folder and events. The same function is one
process's whole work and one rank's.
"""

import json
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from engine.core.clock import Clock
from engine.core.config import to_dict
from engine.core.errors import BadInput
from engine.core.limits import file_digest, inside, regular, sampled_digest
from engine.core.writing import json_text, unwritten, write_text
from engine.distributed.rank import Rank
from engine.models.config import ModelConfig
from engine.models.loading.checkpoint import Checkpoint
from engine.models.loading.find import Found, find
from engine.models.loading.load import save
from engine.training.data.token_file import TokenFile, read_tokens
from engine.training.loop.checkpoint import Facts
from engine.training.loop.phases import Phases
from engine.training.loop.training_loop import Emit, Poll, training_loop
from engine.training.losses.language import fresh_weights, ids_of, judge_of, train
from engine.training.parallel.checkpoint import finished
from engine.training.parallel.learner import OnMesh
from engine.training.trainer.config import TrainerConfig, has_weights, require_fit

CHECKPOINT = "checkpoint.safetensors"
CHECKPOINTS = "checkpoint"  # of ranks: a folder
WRITTEN = ("model.safetensors", "config.json")  # by which a finished training is known again
BESIDE = (  # what a folder holds besides weights and config
    "tokenizer.json", "tokenizer.model", "tokenizer_config.json", "special_tokens_map.json",
    "generation_config.json", "chat_template.jinja",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Prepared:
    """Model and data as they are before the first step. `fresh`: nothing was learnt before."""

    found: Found
    fresh: bool
    data: TokenFile
    training: np.ndarray
    validation: np.ndarray

    @property
    def model(self) -> ModelConfig:
        return self.found.config

    def origin(self) -> Facts:
        """What a checkpoint of this training says of where it comes from."""
        raw = {key: value for key, value in self.model.raw.items() if "dtype" not in key}
        return {
            "model": json.dumps(raw, sort_keys=True),
            "begin": self.begin(),
            "data": self.data.digest[:16],
            "tokens_to_learn_from": len(self.training),
        }

    def begin(self) -> str:
        """The weights it begins with: a folder's have a name, and others may come to lie there."""
        if self.fresh:
            return "random weights"
        assert self.found.folder is not None
        files = sorted(self.found.folder.glob("*.safetensors"))
        return f"weights of {self.found.name} ({sampled_digest(files)[:16]})"

    def weights(self, seed: int) -> Mapping[str, Tensor]:
        """Float32 weights to begin with by their Hugging Face names; a folder's are read when they
        are asked for."""
        if self.fresh:
            return fresh_weights(self.model, seed)
        assert self.found.folder is not None
        return FloatWeights(Checkpoint(self.found.folder, self.model))


class FloatWeights(Mapping[str, Tensor]):
    """Stored weights, each as float32 when it is asked for."""

    def __init__(self, stored: Mapping[str, Tensor]) -> None:
        self.stored = stored

    def __getitem__(self, name: str) -> Tensor:
        return self.stored[name].float()

    def __iter__(self) -> Iterator[str]:
        return iter(self.stored)

    def __len__(self) -> int:
        return len(self.stored)


def prepare(config: TrainerConfig) -> Prepared:
    """Find the model, map the data. Raises BadInput for whatever does not fit."""
    found = find(config.model)
    folder = found.folder
    data = read_tokens(config.data, found.config.vocab, folder)
    if config.validation:
        training = data.ids
        validation = read_tokens(config.validation, found.config.vocab, folder).ids
    else:
        cut = len(data.ids) - int(len(data.ids) * config.held_out)
        training, validation = data.ids[:cut], data.ids[cut:]
    require_fit(config, found.config, len(training))
    if len(validation) < 2:  # none is foretold by one before it
        raise BadInput(
            f"{config.validation or config.data}: {len(validation)} tokens to judge by; at least 2"
            + ("" if config.validation else ": give more text, a larger held_out or a --validation")
        )
    fresh = config.random or not has_weights(found)
    return Prepared(found, fresh, data, training, validation[: config.judged])


def fit(config: TrainerConfig, prepared: Prepared, *, emit: Emit, clock: Clock, poll: Poll) -> None:
    """Train in this process and write the folder. Raises Stopped once `poll` says so."""
    out = place_of(config)
    if finished(out / CHECKPOINTS):
        raise BadInput(
            f"{out}: holds a checkpoint of ranks on a mesh, and this run is one process; "
            "take that mesh again, or train into another folder"
        )
    weights = train(
        prepared.model, config.training, prepared.training, prepared.validation,
        emit=emit, clock=clock, checkpoint=out / CHECKPOINT, poll=poll,
        start=dict(prepared.weights(config.training.seed)), origin=prepared.origin(),
    )  # fmt: skip
    write(config, prepared, weights)


def fit_on_mesh(
    config: TrainerConfig, prepared: Prepared, rank: Rank, phases: Phases, *, emit: Emit,
    clock: Clock, poll: Poll,
) -> None:  # fmt: skip
    """The same as one rank of the config's mesh; the first one writes the folder."""
    out, recipe = place_of(config), config.training
    if (out / CHECKPOINT).exists():
        raise BadInput(
            f"{out}: holds a checkpoint of one process, and this run is a mesh of "
            f"{config.parallel.mesh}; take one process again, or train into another folder"
        )
    if (out / CHECKPOINTS).exists() and not (out / CHECKPOINTS).is_dir():
        raise BadInput(
            f"{out / CHECKPOINTS}: a file, where ranks write checkpoints; move it away, or train "
            "into another folder"
        )
    learner = OnMesh(
        rank, config.parallel, recipe, prepared.model, prepared.weights(recipe.seed),
        ids_of(recipe, prepared.training), phases, out / CHECKPOINTS,
    )  # fmt: skip
    training_loop(
        learner, recipe, judge_of(prepared.model, recipe, prepared.validation),
        emit=emit, clock=clock, origin=prepared.origin(), poll=poll, kind=rank.device.type,
    )  # fmt: skip
    weights = learner.whole()
    if weights is not None:
        write(config, prepared, weights)


def place_of(config: TrainerConfig) -> Path:
    """The folder that all of it goes into, which is made."""
    out = Path(config.out).expanduser()
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as fault:
        raise unwritten(out, "the model", fault) from None
    return out


def write(config: TrainerConfig, prepared: Prepared, weights: dict[str, Tensor]) -> None:
    """Weights in the config's dtype, what lay beside the model's, and how it came about."""
    out, dtype = Path(config.out).expanduser(), getattr(torch, prepared.model.dtype)
    save(out, prepared.model, {name: weight.to(dtype) for name, weight in weights.items()})
    folder = prepared.found.folder
    if folder is not None and folder.resolve() != out.resolve():
        for name in BESIDE:
            if (folder / name).is_file():
                _copy(regular(inside(folder, name), "tokenizer_bytes"), out / name)
    told = {
        "config": to_dict(config), "data": prepared.data.said, "digest": prepared.data.digest,
        "begin": prepared.begin(),
        "written": {name: file_digest(out / name) for name in WRITTEN},
    }  # fmt: skip
    write_text(out / "training.json", json_text(told, indent=2) + "\n", "the training's facts")


def _copy(source: Path, target: Path) -> None:
    try:
        shutil.copyfile(source, target)
    except OSError as fault:
        raise unwritten(target, "what lay beside the model", fault) from None


def require_place(config: TrainerConfig) -> None:
    """Raises BadInput where the trained model cannot go."""
    out = Path(config.out).expanduser()
    if out.exists() and not out.is_dir():
        raise BadInput(f"{out}: a file; give a folder for the trained model")
    found = find(config.model)
    if found.folder is not None and out.resolve() == found.folder.resolve():
        raise BadInput(f"{out}: the model's own folder; give another, so that it stays as it is")
