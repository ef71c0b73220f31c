"""Kinds of described runs, told apart by a TOML file's tables, and who predicts them."""

import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from engine.core.config import from_dict, update
from engine.core.errors import BadInput
from engine.core.toml import load
from workbench.predictions.prediction import Prediction

SERVING = ("kind", "engine", "load")  # what a run of serving alone has


def predicted(path: Path | None, changes: Mapping[str, Any]) -> Prediction:
    """The prediction of the run in a TOML file (none: what the knobs say), knobs turned.

    A run with an engine or a load describes serving, any other one training. Raises BadInput.
    """
    fields = fields_of(path) if path else {}
    if serves(fields) or serves(knob.partition(".")[0] for knob in changes):
        from engine.inference.serving_time.described import ServingRun
        from workbench.predictions import serving

        try:
            run = from_dict(ServingRun, fields)
        except BadInput as fault:
            raise BadInput(f"{path}: {fault}") from None
        return serving.predict(update(run, changes))
    from engine.training.step_time.described import TrainingRun, read
    from workbench.predictions.training import predict

    return predict(update(read(path) if path else TrainingRun(), changes))


def serves(names: Iterable[str]) -> bool:
    """Whether fields of that name are of a serving run."""
    return any(name in SERVING for name in names)


def fields_of(path: Path) -> dict[str, Any]:
    """What a TOML file holds. Raises BadInput."""
    try:
        return load(path)
    except OSError as fault:
        raise BadInput(f"{path}: cannot read ({fault.strerror}); give a TOML file") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as fault:
        raise BadInput(f"{path}: not a TOML file ({fault}); mend that line") from None
