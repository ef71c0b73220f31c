"""Labels of the straight lines of a plot on its panel: which are near, late or free of curves."""

from typing import Any

import numpy as np

from widgets.figure.panel import Panel

EDGE = 0.05  # of the points' extent: half of a label, which the frame would cut farther out
NEAR = 0.4  # of the points' extent: a level line no farther out is worth showing
ALONG, TINY = 60, 1e-300  # places of a line that a label keeps away from; no extent


def near(panel: Panel, level: float) -> bool:
    """Whether a level line lies so close to the curves that the y axis should reach it."""
    base, curves = _shares(panel, level)
    lows, highs = [min(y) for _, y in curves], [max(y) for _, y in curves]
    if not curves or min(lows) <= base <= max(highs):
        return False
    extent = max(highs) - min(lows)
    return bool(1.0 - extent <= NEAR * extent)


def late(panel: Panel, x: float) -> bool:
    """Whether x lies in the right half of a panel's points: a label there reads to the left."""
    places = [
        float(at)
        for series in panel.series
        for at, y in zip(series.x, series.y, strict=True)
        if np.isfinite(at) and np.isfinite(y)
    ]
    places = [at for at in places if at > 0 or not panel.log_x]
    if not places:
        return False
    ends = min(places), max(places)
    middle = np.sqrt(ends[0] * ends[1]) if panel.log_x else sum(ends) / 2
    return bool(x > middle)


def free(panel: Panel, level: float, taken: list[tuple[str, float]]) -> tuple[str, int]:
    """Where the label of a level line is farthest from the curves and from those that are `taken`
    (to which it is added): at which side, and above (1) or below (-1) its line."""
    base, curves = _shares(panel, level)
    lows, highs = [min(y) for _, y in curves] or [base], [max(y) for _, y in curves] or [base]
    inside = {1: max(highs) > base + EDGE, -1: min(lows) < base - EDGE}
    ups = [up for up in (1, -1) if inside[up]] or [1]

    def room(spot: tuple[str, int]) -> float:
        side, up = spot
        x, y = (0.9 if side == "right" else 0.1), base + EDGE * up
        if any(side == other and abs(y - at) < 2 * EDGE for other, at in taken):
            return 0.0
        away = [np.hypot((a - x) / 2, b - y).min() for a, b in curves]
        return float(min(away, default=1.0))

    side, up = max(((side, up) for side in ("right", "left") for up in ups), key=room)
    taken.append((side, base + EDGE * up))
    return side, up


def _shares(panel: Panel, level: float) -> tuple[float, list[tuple[np.ndarray, np.ndarray]]]:
    """Where `level` and points along each line lie, as shares of the panel's extent from the left
    and from below."""

    def on(values: Any, is_log: bool) -> np.ndarray:
        found = np.asarray(values, float)
        return np.log(np.where(found > 0, found, np.nan)) if is_log else found

    height = float(on(level, panel.log_y))
    lines = []
    for series in panel.series:
        x, y = on(series.x, panel.log_x), on(series.y, panel.log_y)
        along = np.linspace(0.0, max(len(x) - 1.0, 0.0), ALONG)
        x, y = (np.interp(along, np.arange(len(of)), of) if len(of) else of for of in (x, y))
        seen = np.isfinite(x) & np.isfinite(y)
        if seen.any():
            lines.append((x[seen], y[seen]))
    if not lines or not np.isfinite(height):
        return 0.5, []
    (left, right), (low, high) = (
        (min(of[k].min() for of in lines), max(of[k].max() for of in lines)) for k in (0, 1)
    )
    low, high = min(low, height), max(high, height)
    wide, tall = max(right - left, TINY), max(high - low, TINY)
    return (height - low) / tall, [((x - left) / wide, (y - low) / tall) for x, y in lines]
