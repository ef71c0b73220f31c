"""Kinds of described runs, told apart by a TOML file's tables, and who predicts them."""

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from engine.core.config import update
from engine.core.errors import BadInput
from engine.core.toml import load
from workbench.predictions.prediction import Prediction


def predicted(path: Path, changes: Mapping[str, Any]) -> Prediction:
    """The prediction of the run in a TOML file, knobs turned. Raises BadInput.

    A file with a table [recipe], or of no other kind, describes training.
    """
    _readable(path)
    from engine.training.step_time.described import read
    from workbench.predictions.training import predict

    return predict(update(read(path), changes))


def _readable(path: Path) -> dict[str, Any]:
    try:
        return load(path)
    except OSError as fault:
        raise BadInput(f"{path}: cannot read ({fault.strerror}); give a TOML file") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as fault:
        raise BadInput(f"{path}: not a TOML file ({fault}); mend that line") from None
