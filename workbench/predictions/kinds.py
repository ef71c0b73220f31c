"""Kinds of described runs, told apart by a TOML file's tables, and who predicts them."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from engine.core.config import update
from workbench.predictions.prediction import Prediction


def predicted(path: Path | None, changes: Mapping[str, Any]) -> Prediction:
    """The prediction of the run in a TOML file (none: a training run), knobs turned.

    Raises BadInput.

    A file with a table [recipe], or of no other kind, describes training.
    """
    from engine.training.step_time.described import TrainingRun, read
    from workbench.predictions.training import predict

    return predict(update(read(path) if path else TrainingRun(), changes))
