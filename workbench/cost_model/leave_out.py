"""The cost model's errors on what its constants never saw: parts of a device, and whole devices.

In come rows of tables of several devices; out come, for each device and operator, the median error
and the part of rows inside an interval, both ways. Neither the constants nor the interval of a
prediction have seen the rows that it is held against.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from engine.hardware import device, link
from engine.hardware.cost.constants import Constants, Interval
from workbench.cost_model.check import errors, told
from workbench.cost_model.fit import (
    PARTS,
    START,
    SURE,
    by_operator,
    fit_one,
    held_out,
    interval_of,
    quarter,
    start_of,
)
from workbench.cost_model.rows import Measured
from workbench.cost_model.simplex import ROUNDS

Row = dict[str, float]
ALIKE = {"device": "", "clock": 1.41e9, "power": 0.42e-12}  # below any limit, for a fit to raise


def both(rows: Sequence[Measured], rounds: int = ROUNDS) -> Mapping[tuple[str, str], Row]:
    """By device and operator: `own_error`, `own_covered`, `left_out_error`, `left_out_covered`.

    The second pair is there only where the tables hold the operator of another device.
    """
    found: dict[tuple[str, str], Row] = {}
    for name, devices in _measured(rows).items():
        away = left_out(devices, name, rounds)
        for sheet, mine in devices.items():
            wrong = held_out(mine, name, start_of(sheet), rounds)
            inside = _inside(wrong, mine)
            names = np.array([told(row) for row in mine])
            for each in sorted(set(names)):
                at = names == each
                line = {"own_error": _median(wrong[at]), "own_covered": float(inside[at].mean())}
                if sheet in away:
                    far, interval = away[sheet]
                    held = (far >= interval.low) & (far <= interval.high)
                    line["left_out_error"] = _median(far[at])
                    line["left_out_covered"] = float(held[at].mean())
                found[sheet, each] = line
    return found


def left_out(
    devices: Mapping[str, Sequence[Measured]], name: str, rounds: int = ROUNDS
) -> dict[str, tuple[np.ndarray, Interval]]:
    """For each device: its rows' errors by constants of the others, and the interval that the
    others show of one another (each predicted by constants of one other alone).

    Collectives over links that hosts share, and over others, are left out among their like.
    """
    if name == "collective" and len({_shared(sheet) for sheet in devices}) > 1:
        return {
            sheet: each
            for kind in (False, True)
            for sheet, each in left_out(
                {s: r for s, r in devices.items() if _shared(s) == kind}, name, rounds
            ).items()
        }
    if len(devices) < 2:
        return {}
    alone = {s: fit_one(start_of(s), name, mine, rounds) for s, mine in devices.items()}
    between = {(a, b): errors(devices[a], alone[b]) for a in devices for b in devices if a != b}
    found = {}
    for sheet, mine in devices.items():
        others = [row for other, theirs in devices.items() if other != sheet for row in theirs]
        start = START.model_copy(update=ALIKE)
        fitted = fit_one(start, name, others, rounds)
        seen = [wrong for (a, b), wrong in between.items() if sheet not in (a, b)]
        shown = np.concatenate(seen) if seen else np.zeros(0)
        found[sheet] = errors(mine, fitted), level(shown)
    return found


def elsewhere(
    rows: Sequence[Measured], own: Constants, rounds: int = ROUNDS
) -> dict[str, Interval]:
    """The intervals of devices that no constants were fitted to, by operator.

    Of operators that several devices were measured at: the errors of each device left out. Of the
    others: the `own` interval, wider by what one of those is at the median. Collectives are alike
    only over links that hosts share, or only over others.
    """
    found = {}
    for name, devices in _measured(rows).items():
        mine = _shared(own.device)
        away = [
            wrong
            for sheet, (wrong, _) in left_out(devices, name, rounds).items()
            if name != "collective" or _shared(sheet) == mine
        ]
        if away:
            found[name] = level(np.concatenate(away))
    if found:
        between = float(np.median([each.high for each in found.values()]))
        for name, each in own.intervals.items():
            wide = float(np.hypot(max(-each.low, each.high), between))
            wider = Interval(low=-wide, median=0.0, high=wide, rows=each.rows)
            found.setdefault(name, wider)
    return found


def _shared(sheet: str) -> bool:
    return link(device(sheet).scale_up).shared


def level(wrong: np.ndarray) -> Interval:
    """Nine in ten of those errors, either side as wide as the wider: which way another device is
    off is not known. Everything where there are none."""
    if not len(wrong):
        return Interval(low=-20, median=0, high=20, rows=1)
    seen = interval_of(wrong)
    wide = max(-seen.low, seen.high)
    return seen.model_copy(update={"low": -wide, "high": wide})


def _measured(rows: Sequence[Measured]) -> dict[str, dict[str, list[Measured]]]:
    """Usable rows by operator and device."""
    sheets = sorted({row.device for row in rows})
    found: dict[str, dict[str, list[Measured]]] = {}
    for sheet in sheets:
        for name, mine in by_operator([row for row in rows if row.device == sheet]).items():
            found.setdefault(name, {})[sheet] = mine
    return found


def _inside(wrong: np.ndarray, rows: Sequence[Measured]) -> np.ndarray:
    """Which rows are inside the interval that the other quarters' errors give."""
    parts = np.array([quarter(row) for row in rows])
    inside = np.empty(len(wrong), bool)
    for part in range(PARTS):
        low, high = np.quantile(wrong[parts != part], SURE[::2])
        mine = wrong[parts == part]
        inside[parts == part] = (mine >= low) & (mine <= high)
    return inside


def _median(wrong: np.ndarray) -> float:
    return float(np.median(np.abs(np.expm1(wrong))))
