"""The cost model's errors on what its constants never saw: parts of a device, and whole devices.

In come rows of tables of several devices; out come, for each device and operator, the median error
and the part of rows inside an interval, both ways. Neither the constants nor the interval of a
prediction have seen the rows that it is held against.

What a device without constants of its own is off by is not known of it; of an operator it is taken
as the spread that parts held out of other devices show, times a widening: by how much the errors of
whole devices left out, of all operators, are wider than that.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from engine.hardware import device, link
from engine.hardware.cost.constants import Constants, Interval
from workbench.cost_model.check import errors, told
from workbench.cost_model.fit import (
    PARTS,
    START,
    by_operator,
    fit_one,
    held_out,
    quarter,
    start_of,
    within,
)
from workbench.cost_model.rows import Measured
from workbench.cost_model.simplex import ROUNDS

Row = dict[str, float]
Key = tuple[str, str]  # operator, device
ALIKE = {"device": "", "clock": 1.41e9, "power": 0.42e-12}  # below any limit, for a fit to raise
INSIDE = 0.9  # of rows, that an interval is to hold


class Errors(NamedTuple):
    """ln(predicted / measured) by operator and device: with parts of it held out, and with all of
    it left out."""

    own: Mapping[Key, np.ndarray]
    away: Mapping[Key, np.ndarray]

    def spread(self, name: str, sheet: str, without: Collection[str] = ()) -> float | None:
        """What nine in ten errors of an operator are below on other devices, held out: the middle
        one of those measured. None where there is none."""
        seen = [
            np.quantile(np.abs(wrong), INSIDE, method="higher")
            for (each, other), wrong in self.own.items()
            if each == name and other != sheet and other not in without
            and _alike(name, sheet, other)
        ]  # fmt: skip
        return float(np.median(seen)) if seen else None

    def widening(self, without: Collection[str] = ()) -> float:
        """Over such a spread, what nine in ten errors of devices left out are below: of all
        operators and devices but those, which count alike."""
        ratios, weights = [], []
        for (name, sheet), wrong in self.away.items():
            spread = self.spread(name, sheet, without)
            if sheet not in without and spread is not None:
                ratios.append(np.abs(wrong) / spread)
                weights.append(np.full(len(wrong), 1 / len(wrong)))
        return _quantile(ratios, weights) if ratios else np.inf

    def between(self, name: str, sheet: str) -> Interval | None:
        """The interval of an operator on a device of which nothing is known; either side as wide:
        which way it is off is not known."""
        spread = self.spread(name, sheet)
        if spread is None:
            return None
        wide = min(20.0, spread * self.widening((sheet,)))
        rows = sum(len(wrong) for (each, _), wrong in self.away.items() if each == name)
        return Interval(low=-wide, median=0.0, high=wide, rows=max(rows, 1))


def errors_of(rows: Sequence[Measured], rounds: int = ROUNDS) -> Errors:
    """The errors of the tables' operators, both ways."""
    own, away = {}, {}
    for name, devices in _measured(rows).items():
        for sheet, mine in devices.items():
            own[name, sheet] = held_out(mine, name, start_of(sheet), rounds)
        away |= {(name, sheet): e for sheet, e in left_out(devices, name, rounds).items()}
    return Errors(own, away)


def both(rows: Sequence[Measured], rounds: int = ROUNDS) -> Mapping[Key, Row]:
    """By device and operator: `own_error`, `own_covered`, `left_out_error`, `left_out_covered`.

    The second pair is there only where the tables hold the operator of another device.
    """
    found: dict[Key, Row] = {}
    seen = errors_of(rows, rounds)
    for name, devices in _measured(rows).items():
        for sheet, mine in devices.items():
            wrong, interval = seen.own[name, sheet], seen.between(name, sheet)
            inside, far = _inside(wrong, mine), seen.away.get((name, sheet))
            names = np.array([told(row) for row in mine])
            for each in sorted(set(names)):
                at = names == each
                line = {"own_error": _median(wrong[at]), "own_covered": float(inside[at].mean())}
                if far is not None and interval is not None:
                    held = np.abs(far) <= interval.high
                    line["left_out_error"] = _median(far[at])
                    line["left_out_covered"] = float(held[at].mean())
                found[sheet, each] = line
    return found


def left_out(
    devices: Mapping[str, Sequence[Measured]], name: str, rounds: int = ROUNDS
) -> dict[str, np.ndarray]:
    """For each device: its rows' errors by constants fitted on the others.

    Collectives over links that hosts share, and over others, are left out among their like.
    """
    found = {}
    for sheet, mine in devices.items():
        others = [
            row
            for other, theirs in devices.items()
            if other != sheet and _alike(name, sheet, other)
            for row in theirs
        ]
        if others:
            start = START.model_copy(update=ALIKE)
            found[sheet] = errors(mine, fit_one(start, name, others, rounds))
    return found


def elsewhere(
    rows: Sequence[Measured], own: Constants, rounds: int = ROUNDS
) -> dict[str, Interval]:
    """The intervals of devices that no constants were fitted to, by operator.

    Of operators that the tables do not hold: the `own` interval, as much wider as the others are.
    Collectives are alike only over links that hosts share, or only over others.
    """
    seen = errors_of(rows, rounds)
    widening, found = seen.widening(), {}
    for name, interval in own.intervals.items():
        # As of a device that is no other's, over links like this one's.
        others = [s for (n, s) in seen.own if n == name and _alike(name, own.device, s)]
        halves = [np.quantile(np.abs(seen.own[name, s]), INSIDE, method="higher") for s in others]
        spread = float(np.median(halves)) if halves else max(-interval.low, interval.high)
        # No narrower than what any device left out of this operator's fit has asked for.
        asked = [np.quantile(np.abs(seen.away[name, s]), INSIDE) for s in others
                 if (name, s) in seen.away]  # fmt: skip
        wide = min(20.0, max([spread * widening, *map(float, asked)]))
        found[name] = Interval(low=-wide, median=0.0, high=wide, rows=interval.rows)
    return found


def _alike(name: str, sheet: str, other: str) -> bool:
    """Whether what a device shows of an operator tells of another."""
    return name != "collective" or _shared(sheet) == _shared(other)


def _shared(sheet: str) -> bool:
    return link(device(sheet).scale_up).shared


def _quantile(parts: Iterable[np.ndarray], weights: Iterable[np.ndarray]) -> float:
    values, heavy = np.concatenate([*parts]), np.concatenate([*weights])
    order = np.argsort(values)
    below = np.cumsum(heavy[order]) / heavy.sum()
    return float(values[order][min(np.searchsorted(below, INSIDE), len(values) - 1)])


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
        low, high = within(wrong[parts != part])
        mine = wrong[parts == part]
        inside[parts == part] = (mine >= low) & (mine <= high)
    return inside


def _median(wrong: np.ndarray) -> float:
    return float(np.median(np.abs(np.expm1(wrong))))
