"""The cost model's errors on what its constants never saw: parts of a device, and whole devices.

In come rows of tables of several devices; out come, for each device and operator, the median error
and the part of rows inside an interval, both ways. Neither the constants nor the interval of a
prediction have seen the rows that it is held against.

What a device without constants of its own is off by is not known of it; of an operator it is the
scatter that parts held out of other devices show and the shift that whole devices have
(`workbench.cost_model.between`).
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from engine.hardware import device, link
from engine.hardware.cost.constants import Constants, Interval
from workbench.cost_model.between import Pair, alike, half, shift
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
WIDEST = 20.0  # of an interval


class Errors(NamedTuple):
    """ln(predicted / measured) by operator and device: with parts of it held out, with all of it
    left out, and by constants of one other device alone."""

    own: Mapping[Key, np.ndarray]
    away: Mapping[Key, np.ndarray]
    pairs: Mapping[Pair, np.ndarray]

    def scatter(self, name: str, sheet: str) -> list[np.ndarray]:
        """Errors of an operator's rows held out on each other device."""
        return [
            wrong
            for (each, other), wrong in self.own.items()
            if each == name and other != sheet and _alike(name, sheet, other)
        ]

    def between(self, name: str, sheet: str) -> Interval | None:
        """The interval of an operator on a device of which nothing is known, by constants of all
        others; either side as wide: which way it is off is not known."""
        found, shifted = self.scatter(name, sheet), shift(self.pairs, name, (sheet,))
        if not found or shifted is None:
            return None
        wide = min(WIDEST, half(found, shifted, len(found)))
        rows = sum(len(wrong) for (each, _), wrong in self.away.items() if each == name)
        return Interval(low=-wide, median=0.0, high=wide, rows=max(rows, 1))


def errors_of(rows: Sequence[Measured], rounds: int = ROUNDS) -> Errors:
    """The errors of the tables' operators, all three ways."""
    own: dict[Key, np.ndarray] = {}
    away: dict[Key, np.ndarray] = {}
    pairs: dict[Pair, np.ndarray] = {}
    for name, devices in _measured(rows).items():
        for sheet, mine in devices.items():
            own[name, sheet] = held_out(mine, name, start_of(sheet), rounds)
        away |= {(name, sheet): e for sheet, e in left_out(devices, name, rounds).items()}
        pairs |= _pairs(devices, name, rounds)
    return Errors(own, away, pairs)


def _pairs(
    devices: Mapping[str, Sequence[Measured]], name: str, rounds: int
) -> dict[Pair, np.ndarray]:
    """Errors on each device by constants of each other one alone. Of devices with one chip (an H100
    and an H200, whose memory alone differs) the first stands for all: their pair shows no shift."""
    found: dict[Pair, np.ndarray] = {}
    chips = {_chip(sheet): sheet for sheet in reversed(list(devices))}
    devices = {sheet: devices[sheet] for sheet in devices if sheet in chips.values()}
    for sheet, mine in devices.items():
        others = [each for each in devices if each != sheet and _alike(name, sheet, each)]
        if others:
            one = fit_one(START.model_copy(update=ALIKE), name, mine, rounds)
            found |= {(name, sheet, each): errors(devices[each], one) for each in others}
    return found


def both(rows: Sequence[Measured], rounds: int = ROUNDS) -> Mapping[Key, Row]:
    """By device and operator: `own_error`, `own_covered`, `left_out_error`, `left_out_covered`.

    The second pair is there only where the tables hold the operator of another device, and its
    interval only where two others show what a device's shift is.
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
                if far is not None:
                    line["left_out_error"] = _median(far[at])
                    if interval is not None:
                        held = np.abs(far) <= interval.high
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
    """The intervals of devices that take the constants of one of these, by operator.

    Of operators that the tables do not hold: as if their errors here were normal ones. Collectives
    are alike only over links that hosts share, or only over others.
    """
    seen, found = errors_of(rows, rounds), {}
    measured = {name: len(wrong) for (name, _), wrong in seen.own.items()}
    for name in [*own.intervals, *(each for each in measured if each not in own.intervals)]:
        interval = own.intervals.get(name) or Interval(
            low=0.0, median=0.0, high=0.0, rows=measured[name]
        )
        # As of a device that is no other's, over links like this one's.
        others = [s for (n, s) in seen.own if n == name and _alike(name, own.device, s)]
        scatter = [seen.own[name, s] for s in others]
        shifted = shift(seen.pairs, name)
        wide = max(-interval.low, interval.high)
        if shifted is not None:
            wide = half(scatter or [alike(wide)], shifted, 1)
        wide = min(WIDEST, wide)
        found[name] = Interval(low=-wide, median=0.0, high=wide, rows=interval.rows)
    return found


def _alike(name: str, sheet: str, other: str) -> bool:
    """Whether what a device shows of an operator tells of another."""
    return name != "collective" or _shared(sheet) == _shared(other)


def _chip(sheet: str) -> tuple[object, ...]:
    """What makes a device's processors."""
    on = device(sheet)
    return on.vendor, on.units, on.clock, tuple(sorted(on.peaks.items()))


def _shared(sheet: str) -> bool:
    return link(device(sheet).scale_up).shared


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
