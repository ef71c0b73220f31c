"""Rows of figures in which a real run, its repetition and its modelled twins stand side by side."""

from typing import Any

import numpy as np

from engine.core.errors import BadInput
from engine.core.events import Span
from engine.core.log import Log
from engine.core.measure import serving
from engine.hardware.device import Device
from engine.inference.config import InferenceConfig
from engine.inference.executors.costs.device_cost import cost_of
from engine.inference.executors.modelled import Modelled
from engine.models.loading.find import find
from widgets.theme import figure
from workbench.real_and_modelled.calibration import Fit, errors
from workbench.real_and_modelled.steps_taken import steps_taken

VALUES, ERRORS = ("real", "modelled", "roofs"), ("repeat", "error", "roofs_error")


def figures(real: Log, again: Log, modelled: Log, bare: Log) -> list[dict[str, Any]]:
    """What the runs came to. `repeat`, `error`, `roofs_error`: that run ÷ the real one - 1."""
    first, *others = (_measures(log) for log in (real, again, modelled, bare))
    found = []
    for (name, unit), value in first.items():
        repeat, model, roofs = (other[name, unit] for other in others)
        row = {"measure": name, "unit": unit, "real": value, "repeat": _error(repeat, value)}
        row |= {"modelled": model, "error": _error(model, value)}
        found.append(row | {"roofs": roofs, "roofs_error": _error(roofs, value)})
    return found


def _measures(log: Log) -> dict[tuple[str, str], float]:
    got = serving(log)
    first, each, whole = got.time_to_first_token, got.time_per_output_token, got.end_to_end
    return {
        ("generated tokens", "tok/s"): got.tokens_per_second,
        ("makespan", "s"): got.makespan,
        ("time to first token, median", "s"): first.p50,
        ("time to first token, 90%", "s"): first.p90,
        ("time per output token, median", "s"): each.p50,
        ("time per output token, 90%", "s"): each.p90,
        ("end to end, median", "s"): whole.p50,
        ("end to end, 90%", "s"): whole.p90,
        ("tokens generated", ""): got.tokens,
        ("steps", ""): sum(s.name == "step" for s in log.of(Span)),
        ("preemptions", ""): got.preemptions,
    }


def _error(modelled: float, real: float) -> float | None:
    """modelled ÷ real - 1; None where real is nothing."""
    return modelled / real - 1 if real else (0.0 if modelled == real else None)


def step_errors(
    config: InferenceConfig,
    device: Device,
    reals: tuple[Log, Log],
    choice: Modelled,
    plain: Modelled,
) -> list[dict[str, Any]]:
    """How far each real step's time is from what either model says of that very step.

    `repeat` holds the second real run's steps against the first's, where they are the same steps.
    """
    model = find(config.model).config
    taken, others = (steps_taken(log) for log in reals)
    if not taken:
        raise BadInput("compare: the real run took one step or none; ask for longer answers")
    pairs = zip(taken, others, strict=False)
    same = [b.seconds / a.seconds - 1 for a, b in pairs if np.array_equal(a.context_B, b.context_B)]
    off = {"repeat": np.array(same or [np.nan])}
    for name, one in (("error", choice), ("roofs_error", plain)):
        cost = cost_of(model, device, config.dtype, one)
        off[name] = errors(taken, cost, one)
    rows = []
    for share, name in ((0.5, "median"), (0.9, "90%")):
        row = dict.fromkeys(VALUES) | {"measure": f"error of a step's time, {name}", "unit": ""}
        rows.append(row | {k: float(np.quantile(np.abs(v), share)) for k, v in off.items()})
    return rows


def calibration_rows(found: Fit) -> list[dict[str, Any]]:
    """The fitted knobs, which are measured ones, and how many steps they rest on."""
    units = {"per_step": "s", "per_sequence": "s", "memory": "", "arithmetic": ""}
    told = {f"calibrated {name}": (units[name], value) for name, value in found.knobs.items()}
    told["steps calibrated on"] = ("", float(found.steps))
    nothing = dict.fromkeys((*VALUES[1:], *ERRORS))
    return [
        {"measure": name, "unit": unit, "real": value, **nothing}
        for name, (unit, value) in told.items()
    ]


def table(rows: list[dict[str, Any]]) -> list[tuple[str, ...]]:
    """Head and rows for a person. Errors are against the real run: that run ÷ real - 1."""
    head = ("measure", "real", "repeated", "modelled", "error", "roofs alone", "error")
    return [head, *(_cells(row) for row in rows)]


def _cells(row: dict[str, Any]) -> tuple[str, ...]:
    real, modelled, roofs = (_shown(row[key], row["unit"]) for key in VALUES)
    repeat, error, roofs_error = (_percent(row[key]) for key in ERRORS)
    return row["measure"], real, repeat, modelled, error, roofs, roofs_error


def _shown(value: float | None, unit: str) -> str:
    return "" if value is None else figure(value, unit)


def _percent(share: float | None) -> str:
    return "" if share is None or not np.isfinite(share) else f"{100 * share:+.1f}%"
