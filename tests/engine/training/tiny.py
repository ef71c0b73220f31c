"""A tiny model and tokens for it in a folder, and a training on them."""

import json
from pathlib import Path

import numpy as np

from engine.core.config import update
from engine.training.loop.settings import Training
from engine.training.trainer.config import TrainerConfig
from tests.engine.models.small import raw


def tiny(folder: Path, family: str, **changes: object) -> Path:
    """The folder, with `changes` to the family's smallest config."""
    (folder / "tiny").mkdir()
    small = raw(family, hidden_size=16, intermediate_size=16) | changes
    (folder / "tiny" / "config.json").write_text(json.dumps(small))
    np.save(folder / "tokens.npy", np.tile(np.arange(2, 50, dtype=np.uint16), 20))
    return folder


def trainer(place: Path, out: str, training: Training, changes: dict[str, object]) -> TrainerConfig:
    """What `workbench train` would be asked for; the model goes into `out`."""
    made = TrainerConfig(
        model=str(place / "tiny"), data=str(place / "tokens.npy"), out=str(place / out),
        threads=1, limit=300, training=training,
    )  # fmt: skip
    return update(made, changes)
