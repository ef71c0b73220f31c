"""Plots of a picture as CSV text: every point of every line, under the names of the axes."""

from collections.abc import Iterable, Sequence
from typing import Any

from widgets.canvas.table import tables_text
from widgets.chart.picture import Picture, Plot


def picture_csv(picture: Picture) -> str:
    """A table for each plot: line, x and y, whole."""

    def rows(plot: Plot) -> Iterable[Sequence[Any]]:
        for line in plot.lines:
            for x, y in zip(line.x.tolist(), line.y.tolist(), strict=True):
                yield line.name, x, y

    return tables_text(
        (plot.title, ["line", _headed("x", plot.x_unit), _headed("y", plot.y_unit)], rows(plot))
        for plot in picture.plots
    )


def _headed(name: str, unit: str) -> str:
    axis = {"s": "time"}.get(unit, name)
    return f"{axis} ({'share' if unit == '%' else unit})" if unit else name
