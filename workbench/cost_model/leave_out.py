"""The cost model's errors on what its constants never saw: parts of a device, and whole devices.

In come rows of tables of several devices; out come, for each device and operator, the median error
and the part of rows inside an interval, both ways. Neither the constants nor the interval of a
prediction have seen the rows that it is held against.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from engine.hardware.cost.constants import Interval
from workbench.cost_model.check import errors
from workbench.cost_model.fit import (
    PARTS,
    by_operator,
    fit_one,
    held_out,
    quarter,
    start_of,
)
from workbench.cost_model.simplex import ROUNDS
from workbench.cost_model.tables import Measured

SURE = (0.05, 0.95)
Row = dict[str, float]


def both(rows: Sequence[Measured], rounds: int = ROUNDS) -> Mapping[tuple[str, str], Row]:
    """By device and operator: `own_error`, `own_covered`, `left_out_error`, `left_out_covered`.

    The second pair is there only where the tables hold the operator of another device.
    """
    found: dict[tuple[str, str], Row] = {}
    for name in by_operator(rows):
        by_device = {
            sheet: by_operator([row for row in rows if row.device == sheet]).get(name, [])
            for sheet in sorted({row.device for row in rows})
        }
        devices = {sheet: mine for sheet, mine in by_device.items() if mine}
        for sheet, mine in devices.items():
            wrong = held_out(mine, name, start_of(sheet), rounds)
            found[sheet, name] = {"own_error": _median(wrong), "own_covered": _inside(wrong, mine)}
        away = left_out(devices, name, rounds)
        for sheet, (wrong, interval) in away.items():
            inside = (wrong >= interval.low) & (wrong <= interval.high)
            found[sheet, name] |= {
                "left_out_error": _median(wrong),
                "left_out_covered": float(inside.mean()),
            }
    return found


def left_out(
    devices: Mapping[str, Sequence[Measured]], name: str, rounds: int = ROUNDS
) -> dict[str, tuple[np.ndarray, Interval]]:
    """For each device: its rows' errors by constants of the others, and the interval that the
    others show of one another (each predicted by constants of one other alone)."""
    if len(devices) < 2:
        return {}
    alone = {s: fit_one(start_of(s), name, mine, rounds) for s, mine in devices.items()}
    between = {(a, b): errors(devices[a], alone[b]) for a in devices for b in devices if a != b}
    found = {}
    for sheet, mine in devices.items():
        others = [row for other, theirs in devices.items() if other != sheet for row in theirs]
        fitted = fit_one(start_of(next(iter(devices))), name, others, rounds)
        seen = [wrong for (a, b), wrong in between.items() if sheet not in (a, b)]
        told = np.concatenate(seen) if seen else np.zeros(0)
        found[sheet] = errors(mine, fitted), interval_of(told)
    return found


def interval_of(wrong: np.ndarray) -> Interval:
    """Nine in ten of those errors, either side made as wide as the wider: which way another device
    is off is not known."""
    if not len(wrong):
        return Interval(low=-20, median=0, high=20, rows=1)
    low, median, high = (float(q) for q in np.quantile(wrong, (SURE[0], 0.5, SURE[1])))
    wide = max(-low, high)
    return Interval(low=-wide, median=median, high=wide, rows=len(wrong))


def _inside(wrong: np.ndarray, rows: Sequence[Measured]) -> float:
    """The part of rows inside the interval that the other quarters' errors give."""
    parts = np.array([quarter(row) for row in rows])
    inside = np.empty(len(wrong), bool)
    for part in range(PARTS):
        low, high = np.quantile(wrong[parts != part], SURE)
        mine = wrong[parts == part]
        inside[parts == part] = (mine >= low) & (mine <= high)
    return float(inside.mean())


def _median(wrong: np.ndarray) -> float:
    return float(np.median(np.abs(np.expm1(wrong))))
