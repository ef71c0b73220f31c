"""An operator profile: times measured on one device for one model, interpolated between sizes.

In comes a folder in LLMServingSim's layout, as its profiler writes it from vLLM: `…dense.csv`
(layer, tokens, time_us), `…per_sequence.csv` (layer, sequences, time_us) and `…attention.csv`
(prefill_chunk, kv_prefill, n_decode, kv_decode, time_us), each of one layer. Beyond the largest
size a time goes on along the line of the last two; sizes asked for there are counted as gaps.
"""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from engine.core.errors import BadInput
from engine.core.limits import cells_of, read_text

DENSE, ROWS = ("layer", "tokens", "time_us"), ("layer", "sequences", "time_us")
ATTENTION = ("prefill_chunk", "kv_prefill", "n_decode", "kv_decode", "time_us")
MICRO = 1e-6
ENDS = {"dense.csv": DENSE, "per_sequence.csv": ROWS, "attention.csv": ATTENTION}


class Line:
    """Seconds by one size, straight between measured ones."""

    def __init__(self, sizes: np.ndarray, seconds: np.ndarray) -> None:
        order = np.argsort(sizes)
        self.sizes, self.seconds = sizes[order], seconds[order]

    def at(self, size: float) -> float:
        """Beyond the last size along the last two's line; below the first as long as the first."""
        if size <= self.sizes[-1] or len(self.sizes) < 2:
            return float(np.interp(size, self.sizes, self.seconds))
        return float(_beyond(size, self.sizes[-2:], self.seconds[-2:]))


class Grid:
    """Seconds of one call of attention by (chunk, its cached tokens, answers, their context)."""

    def __init__(self, rows: np.ndarray) -> None:
        self.axes = [np.unique(rows[:, axis]) for axis in range(4)]
        self.seconds = np.full([len(axis) for axis in self.axes], np.nan)
        at = tuple(np.searchsorted(self.axes[axis], rows[:, axis]) for axis in range(4))
        self.seconds[at] = rows[:, 4] * MICRO
        self.measured = int(np.isfinite(self.seconds).sum())
        if self.axes[0][0] == 0:  # no chunk: what it has cached does not matter, nor an answer's
            self.seconds[0] = self.seconds[0, :1]
        if self.axes[2][0] == 0:
            self.seconds[:, :, 0] = self.seconds[:, :, 0, :1]
        for axis in (3, 1, 2, 0):
            self._fill(axis)
        self.seconds[~np.isfinite(self.seconds)] = np.nanmin(self.seconds)

    def _fill(self, axis: int) -> None:
        """What was not measured, along an axis, from what was at other places of it."""
        sizes = self.axes[axis]
        lines = np.moveaxis(self.seconds, axis, -1)
        for place in np.ndindex(lines.shape[:-1]):
            line = lines[place]
            known = np.isfinite(line)
            if known.sum() >= 2 and not known.all():
                told = Line(sizes[known], line[known])
                lines[place] = [told.at(size) for size in sizes]

    def at(self, point: tuple[float, float, float, float]) -> float:
        """Straight between the sixteen corners round the point, or beyond the last ones."""
        corners = self.seconds
        for axis, size in zip(self.axes, point, strict=True):
            if len(axis) == 1:
                corners = corners[0]
                continue
            above = int(np.clip(np.searchsorted(axis, size), 1, len(axis) - 1))
            share = (size - axis[above - 1]) / (axis[above] - axis[above - 1])
            corners = corners[above - 1] * (1 - share) + corners[above] * share
        return max(float(corners), float(self.seconds.min()))


class Profile:
    """The tables of a folder: what each operator of a layer takes, and what was asked beyond."""

    def __init__(self, folder: Path) -> None:
        if not folder.is_dir():
            raise BadInput(f"profile {str(folder)!r}: no such folder; give one with …dense.csv")
        tables = {end: list(_rows(_one(folder, end), names)) for end, names in ENDS.items()}
        self.folder = folder
        self.dense, self.rows = (_lines(tables[end]) for end in ("dense.csv", "per_sequence.csv"))
        self.attention = Grid(np.array([row for _, row in tables["attention.csv"]]))
        self.gaps: Counter[str] = Counter()

    def operator(self, name: str, size: float) -> float | None:
        """Seconds of one call of a layer's operator; None where the profile has no such operator.

        `size`: sequences of an operator that goes by them, else tokens.
        """
        line = self.dense.get(name) or self.rows.get(name)
        if line is None:
            self.gaps[f"operator {name}"] += 1
            return None
        if size > line.sizes[-1]:
            self.gaps[f"{name} of more than {line.sizes[-1]:g}"] += 1
        return line.at(size)

    def call(self, chunk: float, cached: float, ones: float, context: float) -> float:
        """Seconds of one call of attention in one layer."""
        point = (chunk, cached, ones, context)
        for name, axis, size in zip(ATTENTION, self.attention.axes, point, strict=False):
            if size > axis[-1]:
                self.gaps[f"attention with {name} above {axis[-1]:g}"] += 1
        return self.attention.at(point)


def _one(folder: Path, end: str) -> Path:
    found = sorted(path for path in folder.iterdir() if path.name.endswith(end))
    if len(found) != 1:
        names = ", ".join(path.name for path in found) or "none"
        raise BadInput(f"profile {str(folder)!r}: one file …{end} is needed; there: {names}")
    return found[0]


def _rows(path: Path, names: tuple[str, ...]) -> Iterator[tuple[str, list[float]]]:
    """Each line's operator ("" where the table is of one alone) and numbers. Raises BadInput."""
    try:
        lines = read_text(path).splitlines()
    except (OSError, UnicodeDecodeError):
        raise BadInput(f"{path}: cannot read as text; give a CSV file") from None
    kept = [(number, line) for number, line in enumerate(lines, 1) if line and line[0] != "#"]
    head = tuple(kept[0][1].split(",")) if kept else ()
    if head != names or len(kept) < 2:
        raise BadInput(f"{path}: columns {', '.join(names)} and a row are needed")
    for number, line in kept[1:]:
        cells = cells_of(line, f"{path}:{number}")
        words, numbers = (cells[:1], cells[1:]) if names[0] == "layer" else ([""], cells)
        try:
            values = [float(cell) for cell in numbers]
        except ValueError:
            values = []
        if len(cells) != len(names) or not values or not all(0 <= v < 1e15 for v in values):
            raise BadInput(f"{path}:{number}: {len(names)} columns of numbers of at least 0 needed")
        yield words[0], values


def _lines(rows: list[tuple[str, list[float]]]) -> dict[str, Line]:
    names = dict.fromkeys(name for name, _ in rows)
    told = {name: np.array([row for other, row in rows if other == name]) for name in names}
    return {name: Line(table[:, 0], table[:, 1] * MICRO) for name, table in told.items()}


def _beyond(size: float, sizes: np.ndarray, seconds: np.ndarray) -> float:
    slope = max(0.0, (seconds[1] - seconds[0]) / (sizes[1] - sizes[0]))
    return float(seconds[1] + slope * (size - sizes[1]))
