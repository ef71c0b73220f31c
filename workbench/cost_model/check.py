"""How far the cost model is from measured tables: errors by operator and device, with quantiles.

In come rows of `workbench.cost_model.tables` and constants; out come rows of a report. An error is
predicted over measured time; `covered` is the part of measurements inside the model's interval.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from engine.hardware import cost_curves, device, link
from engine.hardware.cost import collective
from engine.hardware.cost_curves import Curves
from workbench.cost_model.tables import LeftOut, Measured

QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)


def predicted(rows: Sequence[Measured], curves: Curves) -> np.ndarray:
    """Seconds of each row, in order; rows of one operator, device and dtype go together."""
    found = np.empty(len(rows))
    together: dict[tuple[str, ...], list[int]] = defaultdict(list)
    for index, row in enumerate(rows):
        together[row.operator, row.device, str(row.shape[-1])].append(index)
    for (operator, sheet, dtype), at in together.items():
        shapes = [rows[index].shape for index in at]
        found[at] = _together(operator, sheet, dtype, shapes, curves)
    return found


def _together(
    operator: str, sheet: str, dtype: str, shapes: list[tuple[Any, ...]], curves: Curves
) -> np.ndarray:
    on = device(sheet)
    if operator == "collective":
        by = link(on.scale_up)
        return np.array([collective(curves, by, *shape).seconds for shape in shapes])
    if operator in ("matmul", "prefill", "decode"):
        columns = np.array([shape[:-1] for shape in shapes], np.float64).T
        return getattr(cost_curves, operator)(on, curves, *columns, dtype).seconds
    columns = np.array([shape[1:-1] for shape in shapes], np.float64).T
    return cost_curves.rows(on, curves, operator, *columns, dtype).seconds


def errors(rows: Sequence[Measured], curves: Curves) -> np.ndarray:
    """ln(predicted / measured) of each row."""
    return np.log(predicted(rows, curves) / np.array([row.seconds for row in rows]))


def report(rows: Sequence[Measured], curves: Curves) -> list[dict[str, Any]]:
    """A line for each operator and device."""
    wrong = errors(rows, curves)
    together: dict[tuple[str, str], list[int]] = defaultdict(list)
    for index, row in enumerate(rows):
        together[row.device, row.operator].append(index)
    return [
        _line(sheet, operator, wrong[together[sheet, operator]], curves)
        for sheet, operator in sorted(together)
    ]


def _line(sheet: str, operator: str, wrong: np.ndarray, curves: Curves) -> dict[str, Any]:
    off = np.abs(np.expm1(wrong))
    quantiles = np.quantile(np.expm1(wrong), QUANTILES)
    line: dict[str, Any] = {"device": sheet, "operator": operator, "rows": len(wrong)}
    line |= {"median_error": float(np.median(off)), "p90_error": float(np.quantile(off, 0.9))}
    line |= {"worst_error": float(off.max()), "bias": float(np.expm1(np.mean(wrong)))}
    line["quantiles"] = {f"{q:g}": float(v) for q, v in zip(QUANTILES, quantiles, strict=True)}
    interval = curves.intervals.get(operator)
    if interval:
        inside = (wrong >= interval.low) & (wrong <= interval.high)
        line["covered"] = float(inside.mean())
    return line


def reasons(left_out: Iterable[LeftOut]) -> Mapping[str, int]:
    """Why rows were left out, and how many each."""
    return Counter(row.why for row in left_out)
