"""Trains a model of any family the engine loads on a token file, and writes it as a folder.

In comes a TrainerConfig; out come a Hugging Face folder and events. The same function is one
process's whole work and one rank's.
"""

import json
import shutil
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from engine.core.clock import Clock
from engine.core.config import to_dict
from engine.core.errors import BadInput
from engine.models.config import ModelConfig
from engine.models.find import Found, find
from engine.models.load import save
from engine.training.checkpoint import Facts
from engine.training.descend import Emit, Poll
from engine.training.language import fresh_weights, train
from engine.training.replicas import Replicas
from engine.training.token_file import TokenFile, read_tokens
from engine.training.trainer_config import TrainerConfig, has_weights, require_fit

CHECKPOINT = "checkpoint.safetensors"
BESIDE = (  # what a folder holds besides weights and config
    "tokenizer.json", "tokenizer_config.json", "special_tokens_map.json",
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
        begun = "random weights" if self.fresh else f"weights of {self.found.name}"
        raw = {key: value for key, value in self.model.raw.items() if "dtype" not in key}
        return {
            "model": json.dumps(raw, sort_keys=True),
            "begin": begun,
            "data": self.data.digest[:16],
            "tokens_to_learn_from": len(self.training),
        }

    def weights(self, seed: int) -> dict[str, Tensor]:
        """Float32 weights to begin with."""
        if self.fresh:
            return fresh_weights(self.model, seed)
        assert self.found.folder is not None
        return float_weights(self.found)


def float_weights(found: Found) -> dict[str, Tensor]:
    """A folder's weights in float32 by their Hugging Face names."""
    from engine.models.checkpoint import Checkpoint

    assert found.folder is not None
    stored = Checkpoint(found.folder, found.config)
    return {name: stored[name].float() for name in stored}


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
    fresh = config.random or not has_weights(found)
    return Prepared(found, fresh, data, training, validation[: config.judged])


def fit(
    config: TrainerConfig, prepared: Prepared, *, emit: Emit, clock: Clock, replicas: Replicas,
    poll: Poll,
) -> None:  # fmt: skip
    """Train and, as the first replica, write the folder. Raises Stopped once `poll` says so."""
    out = Path(config.out).expanduser()
    out.mkdir(parents=True, exist_ok=True)
    weights = train(
        prepared.model, config.training, prepared.training, prepared.validation,
        emit=emit, clock=clock, checkpoint=out / CHECKPOINT, replicas=replicas, poll=poll,
        start=prepared.weights(config.training.seed), origin=prepared.origin(),
    )  # fmt: skip
    if replicas.rank == 0:
        write(config, prepared, weights)


def write(config: TrainerConfig, prepared: Prepared, weights: dict[str, Tensor]) -> None:
    """Weights in the config's dtype, what lay beside the model's, and how it came about."""
    out, dtype = Path(config.out).expanduser(), getattr(torch, prepared.model.dtype)
    save(out, prepared.model, {name: weight.to(dtype) for name, weight in weights.items()})
    folder = prepared.found.folder
    if folder is not None and folder.resolve() != out.resolve():
        for name in BESIDE:
            if (folder / name).is_file():
                shutil.copyfile(folder / name, out / name)
    told = {"config": to_dict(config), "data": prepared.data.said, "digest": prepared.data.digest}
    (out / "training.json").write_text(json.dumps(told, indent=2) + "\n", encoding="utf-8")


def require_place(config: TrainerConfig) -> None:
    """Raises BadInput where the trained model cannot go."""
    out = Path(config.out).expanduser()
    if out.exists() and not out.is_dir():
        raise BadInput(f"{out}: a file; give a folder for the trained model")
    found = find(config.model)
    if found.folder is not None and out.resolve() == found.folder.resolve():
        raise BadInput(f"{out}: the model's own folder; give another, so that it stays as it is")
