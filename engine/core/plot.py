"""A plot: the title and axes of one panel of curves, and where its series lie in a log.

A driver names its plots when it opens its log and gives points by `Live.curve`; the view of curves
draws them, and `read` gives them back to whoever judges the run.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from engine.core.errors import BadInput
from engine.core.log import Log

PREFIX = "curve/"  # of the names of blobs that are curves
BOUND, MODELLED = " (bound)", " (modelled)"  # how names of limits and of modelled series end


@dataclass(frozen=True, slots=True)
class Plot:
    """One panel of curves. `x`, `y`: axis labels with the unit in brackets; `zero`: whether a
    linear y axis starts at nought."""

    title: str
    x: str
    y: str
    log_x: bool = False
    log_y: bool = False
    zero: bool = True

    def name(self, series: str) -> str:
        """What the blob of a series is called."""
        return f"{PREFIX}{self.title}/{series}"

    def axes(self) -> dict[str, Any]:
        """The axes as a log's header holds them."""
        return {
            "x": self.x, "y": self.y, "log_x": self.log_x, "log_y": self.log_y, "zero": self.zero
        }  # fmt: skip

    def read(self, log: Log, series: str) -> np.ndarray:
        """A series of this plot, [2, K] (x, y) or [4, K] (x, y, low, high). Raises BadInput."""
        try:
            return log.blobs[self.name(series)]
        except KeyError:
            raise BadInput(
                f"series {series!r} of {self.title!r}: not in this run; it holds {self.series(log)}"
            ) from None

    def series(self, log: Log) -> list[str]:
        """The names of this plot's series in a log, sorted."""
        prefix = self.name("")
        return sorted(name.removeprefix(prefix) for name in log.blobs if name.startswith(prefix))


def curve(points: Any) -> np.ndarray:
    """Rows of points, (x, y) or (x, y, low, high) each, or columns already, as columns [2 or 4, K].

    A [K, 2] or [K, 4] list of tuples is turned; an array is taken as columns. Raises BadInput.
    """
    columns = points if isinstance(points, np.ndarray) else np.array(points, np.float64).T
    if columns.size == 0:
        columns = np.zeros((2, 0))
    if columns.ndim != 2 or columns.shape[0] not in (2, 4):
        raise BadInput(f"a curve has 2 or 4 columns (x, y, low, high), not {columns.shape}")
    return np.ascontiguousarray(columns, np.float64)
