"""Page counts over time: what the level chart under the cells shows."""

import numpy as np

from widgets.canvas.columns import Columns

POINTS = 900  # more than this do not fit the chart's pixels
NAMES = ("used", "cached", "free", "host")


def series() -> Columns:
    """Columns for the moments at which counts were taken."""
    return Columns(time="f8", **dict.fromkeys(NAMES, "i4"))


def shown(kept: Columns, time: float, latest: tuple[int, ...]) -> dict[str, np.ndarray]:
    """At most 900 points, in each stretch the one with most pages used, and the `latest`."""
    count, used = len(kept), kept["used"]
    picked = np.arange(count)
    if count > POINTS:
        size = -(-count // (POINTS - 1))
        padded = np.pad(used, (0, -count % size), constant_values=-1).reshape(-1, size)
        most = np.arange(0, count, size) + padded.argmax(axis=1)
        picked = np.unique(np.append(0, most))
    columns = {"time": np.append(kept["time"][picked], time)}
    for name, value in zip(NAMES, latest, strict=True):
        columns[name] = np.append(kept[name][picked], value).astype(np.int32)
    return columns
