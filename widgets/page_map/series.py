"""Page counts over time: what the level chart under the cells shows."""

import numpy as np

from widgets.columns import Columns

POINTS = 900  # more than this do not fit the chart's pixels
NAMES = ("used", "cached", "free", "host")


def series() -> Columns:
    """Columns for the moments at which counts were taken."""
    return Columns(time="f8", **dict.fromkeys(NAMES, "i4"))


def shown(kept: Columns, time: float, latest: tuple[int, ...]) -> dict[str, np.ndarray]:
    """At most 900 points, in each stretch the one with most pages used, and the `latest`."""
    picked = np.arange(len(kept))
    if len(kept) > POINTS:
        edges = np.linspace(0, len(kept), POINTS, dtype=np.int64)
        used = kept["used"]
        most = [a + int(used[a:b].argmax()) for a, b in zip(edges[:-1], edges[1:], strict=True)]
        picked = np.unique([0, *most])
    columns = {"time": np.append(kept["time"][picked], time)}
    for name, value in zip(NAMES, latest, strict=True):
        columns[name] = np.append(kept[name][picked], value).astype(np.int32)
    return columns
