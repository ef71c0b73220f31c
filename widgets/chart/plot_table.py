"""Plots of a picture as CSV text: every point of every line, under the names of the axes."""

from collections.abc import Iterable, Sequence
from typing import Any

from widgets.canvas.table import tables_text
from widgets.chart.picture import Picture, Plot


def picture_csv(picture: Picture) -> str:
    """A table for each plot: line, x and y, whole. Seconds that are no moments of the run are what
    the plot's title says."""

    def rows(plot: Plot) -> Iterable[Sequence[Any]]:
        for line in plot.lines:
            for x, y in zip(line.x.tolist(), line.y.tolist(), strict=True):
                yield line.name, x, y

    def headings(plot: Plot) -> list[str]:
        across = ("time" if plot.timed else plot.title) if plot.x_unit == "s" else "x"
        return ["line", _headed(across, plot.x_unit), _headed("y", plot.y_unit)]

    return tables_text((plot.title, headings(plot), rows(plot)) for plot in picture.plots)


def _headed(name: str, unit: str) -> str:
    return f"{name} ({'share' if unit == '%' else unit})" if unit else name
