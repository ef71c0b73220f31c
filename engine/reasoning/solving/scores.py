"""Scores: what became of each problem of a run, a row each, kept as columns beside its log.

Shape letters: P problems, N threads of each.
"""

from dataclasses import dataclass, field

import numpy as np

from engine.core.errors import BadInput
from engine.core.log import Log
from engine.core.names import suggest
from engine.core.run import Live
from engine.reasoning.solving.method import Result

PREFIX = "scores/"  # of the names of a log's blobs that are columns of scores


@dataclass(slots=True)
class Scores:
    """Columns by name, in the order of the problems: `right`, and a method's counts and figures."""

    rows: dict[int, dict[str, float | list[float]]] = field(default_factory=dict)  # by number

    def take(self, number: int, result: Result) -> None:
        """One more problem is over."""
        figures = {
            name: [float(x) for x in value] if not isinstance(value, int | float) else float(value)
            for name, value in result.figures.items()
        }
        counts = {name: float(value) for name, value in result.counts.items()}
        self.rows[number] = {"right": float(result.right), **counts, **figures}

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def names(self) -> tuple[str, ...]:
        """Of the columns."""
        return tuple(next(iter(self.rows.values()), {}))

    def column(self, name: str) -> np.ndarray:
        """[P], or [P, N] of what each thread has, -1 where a problem had fewer. Raises BadInput."""
        if name not in self.names:
            raise BadInput(f"scores: no column {name!r}; {suggest(name, self.names)}")
        values = [self.rows[number][name] for number in sorted(self.rows)]
        if not isinstance(values[0], list):
            return np.array(values, np.float64)
        rows = [value for value in values if isinstance(value, list)]
        column_PN = np.full((len(rows), max(map(len, rows))), -1.0)
        for row_N, row in zip(column_PN, rows, strict=True):
            row_N[: len(row)] = row
        return column_PN

    def total(self, name: str) -> float:
        """The sum of a column over the problems that are over."""
        return float(self.column(name).sum())

    def keep(self, live: Live, now: float) -> None:
        """Put every column beside the log."""
        for name in self.names:
            live.keep(now, PREFIX + name, self.column(name))


def scores_of(log: Log) -> dict[str, np.ndarray]:
    """The columns of scores that a run kept, by name."""
    return {
        name.removeprefix(PREFIX): array
        for name, array in log.blobs.items()
        if name.startswith(PREFIX)
    }
