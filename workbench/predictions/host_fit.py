"""Host time of an engine's steps, fitted to one run of it: what its requests' TPOT is longer for.

In comes a table of requests (`workbench.predictions.serving_tables`), best with the device's own
operator profile; out come the engine's constants with the time of a step that makes the mean TPOT
equal, as a file that `engine.name` takes.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from engine.core.config import update
from engine.core.errors import BadInput
from engine.inference.serving_time.described import Engine
from engine.inference.serving_time.replica import Replicas
from workbench.cost_model.tables import lines_of
from workbench.predictions.serving_tables import described, fits, measured

TRIES = 4
CLOSE = 1e-3  # of the mean TPOT
FIRST = 2e-4  # s: the second point of the line


def host(path: Path, changes: Mapping[str, Any]) -> tuple[Engine, float]:
    """The engine's constants, and the error of the mean TPOT that is left: what a host's time
    cannot make longer may be too long already. Raises BadInput."""
    cells = list(lines_of(path))
    if not fits(set(cells[0].line)):
        raise BadInput(f"{path}: no table of requests; give one with their lengths and times")
    run = described(cells, path, changes)
    requests, real = measured(cells)
    aim = float(np.nanmean(real.tpot_R))

    def off(per_step: float) -> float:
        replicas = Replicas(update(run, {"engine.per_step": per_step}))
        return float(np.nanmean(replicas.times(*requests).tpot_R)) / aim - 1

    before, at = 0.0, FIRST
    last, error = off(before), off(at)
    for _ in range(TRIES):
        slope = (error - last) / (at - before) if at != before else 0.0
        if abs(error) < CLOSE or slope <= 0:
            break
        before, last = at, error
        at = max(0.0, at - error / slope)
        error = off(at)
    known = run.engine.constants()
    source = f"per_step: fitted to the mean TPOT of {path.name}; the others: {known.source}"
    return known.model_copy(update={"per_step": at, "source": source}), error


def toml(engine: Engine) -> str:
    """The constants as a file."""
    text = engine.source.replace("\\", "/").replace('"', "'")
    return (
        "# Host time of an engine beside its model's steps; written by `workbench cost host`.\n"
        f'name = "{engine.name}"\nper_step = {engine.per_step:.4g}\n'
        f"per_sequence = {engine.per_sequence:.4g}\nreserved = {engine.reserved:.4g}\n"
        f'source = "{text}"\n'
    )
