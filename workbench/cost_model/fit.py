"""Fits the cost model's constants on measured tables of one device family, holding rows out.

Rows are held out in whole groups (a product's n and k, an attention's heads and batch, a layer's
model and split), chosen by the checksum of the group's name, so that the split is the same on every
machine. Out come constants with the held-out errors as intervals, as a TOML text.
"""

import zlib
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from engine.core.errors import BadInput
from engine.hardware.cost import with_intervals
from engine.hardware.cost_curves import (
    Collective,
    Curves,
    Decode,
    Interval,
    Matmul,
    Prefill,
    Rows,
)
from workbench.cost_model.check import errors
from workbench.cost_model.tables import Measured

PARTS = 4  # that groups are dealt into
NOISE = 12e-6  # s: layer operators printed in whole microseconds are too coarse below this
ROUNDS = 500  # of a simplex
FEWEST = 12  # rows to fit an operator on
ROWS = ("norm", "rotary", "swiglu", "add", "embedding")
OPERATORS = ("matmul", "prefill", "decode", "collective", *ROWS)
SPLIT = (
    "groups (n and k of a product; heads and batch of an attention; model and split of a layer; "
    "kind and ranks of a collective) whose crc32 is a multiple of 4 are held out whole; the rest "
    "is fitted, by least absolute error of ln(predicted / measured); layer products below 12 us, "
    "which their table rounds to 1 us, and times of networks, whose small messages carry the "
    "host's launches, are in neither; tables that hold the same operator count alike; intervals "
    "are quantiles over four such fits, each of which holds another quarter out, so that every row "
    "is predicted by constants that never saw it"
)
START = Curves(
    source="",
    split=SPLIT,
    best=0.8,
    matmul=Matmul(launch=4e-6, rate=1.2, edge=20, wave=1e-6, bandwidth=0.8, overlap=0.2),
    prefill=Prefill(launch=4e-6, rate=0.7, tile=5e-6, tail=0.5, bandwidth=0.7),
    decode=Decode(launch=1e-5, merge=5e-6, block=1e-6, bandwidth=0.8, overlap=0.3),
    collective=Collective(launch=8e-6, step=1e-6, at_once=0.3, begin=2e-5, bandwidth=0.8),
    rows={name: Rows(launch=2e-6, number=5e-10, bandwidth=0.5) for name in ROWS},
)


def quarter(row: Measured) -> int:
    """Which of four parts a row's group belongs to; part 0 is held out from what is shipped."""
    return zlib.crc32(row.group.encode()) % PARTS


def usable(rows: Sequence[Measured]) -> list[Measured]:
    """Rows whose printed time is fine enough and not the host's."""
    return [row for row in rows if not _coarse(row) and not row.group.startswith("network")]


def _coarse(row: Measured) -> bool:
    layer = row.group.startswith("layer")
    return layer and row.operator == "matmul" and row.seconds < NOISE


def fit(
    rows: Sequence[Measured], source: str, start: Curves = START, rounds: int = ROUNDS
) -> Curves:
    """Constants fitted on the rows that are not held out, with intervals from rows held out."""
    rows = usable(rows)
    found = start.model_copy(update={"source": source})
    intervals = {}
    for name in OPERATORS:
        mine = [row for row in rows if row.operator == name]
        if len(mine) < FEWEST or len({quarter(row) for row in mine}) < PARTS:
            raise BadInput(f"fit: {len(mine)} rows of {name}; give tables with more of them")
        wrong: list[float] = []
        fitted = found
        for part in reversed(range(PARTS)):  # the last one, without part 0, stays
            seen = [row for row in mine if quarter(row) != part]
            fitted = _fit_one(found, name, seen, rounds)
            wrong += errors([row for row in mine if quarter(row) == part], fitted).tolist()
        found = fitted
        low, median, high = (float(q) for q in np.quantile(wrong, (0.05, 0.5, 0.95)))
        intervals[name] = Interval(low=low, median=median, high=high, rows=len(wrong))
    return with_intervals(found, intervals)


def _fit_one(curves: Curves, name: str, rows: list[Measured], rounds: int) -> Curves:
    part: Any = curves.rows[name] if name in ROWS else getattr(curves, name)
    names = list(type(part).model_fields)

    def made(point: np.ndarray) -> Curves:
        values = dict(zip(names, np.exp(point).tolist(), strict=True))
        values = {k: min(v, 1.0) if k == "overlap" else v for k, v in values.items()}
        new = part.model_copy(update=values)
        if name in ROWS:
            return curves.model_copy(update={"rows": {**curves.rows, name: new}})
        return curves.model_copy(update={name: new})

    kinds = [row.group.split()[0] for row in rows]
    weights = np.array([1.0 / kinds.count(kind) for kind in kinds])

    def off(point: np.ndarray) -> float:
        return float((weights * np.abs(errors(rows, made(point)))).sum())

    point = np.log([getattr(part, each) for each in names])
    for _ in range(2):  # a second start frees a simplex that shrank too early
        point = lowest(off, point, rounds=rounds)
    return made(point)


def lowest(
    value: Callable[[np.ndarray], float],
    start: np.ndarray,
    step: float = 0.25,
    rounds: int = ROUNDS,
) -> np.ndarray:
    """The point a downhill simplex ends at (Nelder and Mead, Computer Journal 1965)."""
    points = [start, *(start + step * axis for axis in np.eye(len(start)))]
    heights = [value(point) for point in points]
    for _ in range(rounds):
        order = np.argsort(heights)
        points, heights = [points[i] for i in order], [heights[i] for i in order]
        if heights[-1] - heights[0] < 1e-7:
            break
        middle = np.mean(points[:-1], axis=0)
        mirrored = 2 * middle - points[-1]
        height = value(mirrored)
        if height < heights[0]:
            further = 3 * middle - 2 * points[-1]
            beyond = value(further)
            best = (further, beyond) if beyond < height else (mirrored, height)
            points[-1], heights[-1] = best
        elif height < heights[-2]:
            points[-1], heights[-1] = mirrored, height
        else:
            inside = (middle + points[-1]) / 2
            height = value(inside)
            if height < heights[-1]:
                points[-1], heights[-1] = inside, height
            else:
                points = [points[0], *((points[0] + p) / 2 for p in points[1:])]
                heights = [heights[0], *(value(p) for p in points[1:])]
    return points[int(np.argmin(heights))]


def toml(curves: Curves) -> str:
    """The constants as the file the project ships."""
    parts = [
        "# Constants of the operator cost model; written by `workbench check cost-model --fit`."
    ]
    parts.append(f"source = {_quoted(curves.source)}\nsplit = {_quoted(curves.split)}")
    parts.append(f"best = {curves.best:g}")
    for name in ("matmul", "prefill", "decode", "collective"):
        parts.append(_section(name, getattr(curves, name)))
    parts += [_section(f"rows.{name}", each) for name, each in curves.rows.items()]
    parts += [_section(f"intervals.{name}", each) for name, each in curves.intervals.items()]
    return "\n\n".join(parts) + "\n"


def _section(name: str, part: Any) -> str:
    values = part.model_dump()
    return "\n".join([f"[{name}]", *(f"{key} = {_value(value)}" for key, value in values.items())])


def _value(value: float) -> str:
    return str(value) if isinstance(value, int) else repr(float(f"{value:.4g}"))


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "/").replace('"', "'") + '"'
