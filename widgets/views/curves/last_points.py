"""Figures of curves: where the lines of the first panel end, as a person reads them off."""

from typing import Any

import numpy as np

from widgets.theme import figure

EACH = 3  # lines that are told one by one; of more the least and the most
UNITS = ("s", "B", "B/s", "FLOP", "FLOP/s", "%", "W", "J")


def last_points(panels: list[dict[str, Any]], x: np.ndarray, y: np.ndarray) -> dict[str, Any]:
    """`figures` and what each is `meant` to be; both empty where no panel has a point. `panels` as
    in a frame, `x` and `y` its columns. A line ends where its x is largest; limits are no lines."""
    for panel in panels:
        ends = []
        for line in panel["series"]:
            own = slice(line["first"], line["first"] + line["count"])
            known = np.flatnonzero(np.isfinite(x[own]) & np.isfinite(y[own]))
            if len(known) and not line["bound"]:
                at = known[np.argmax(x[own][known])]
                ends.append((line["name"], float(x[own][at]), float(y[own][at])))
        if ends:
            return _told(panel, ends)
    return {"figures": [], "meant": []}


def _told(panel: dict[str, Any], ends: list[tuple[str, float, float]]) -> dict[str, Any]:
    words = ["" for _ in ends]
    if len(ends) > EACH:
        ends = [min(ends, key=lambda end: end[2]), max(ends, key=lambda end: end[2])]
        words = ["least: ", "most: "]
    text, unit = _unit(panel["y"])
    along, of = _unit(panel["x"])
    figures, meant = [], []
    for word, (name, at, value) in zip(words, ends, strict=True):
        figures.append([f"{word}{name}", figure(value, unit)])
        where = f"{along} {figure(at, of)}".strip()
        meant.append(f"{panel['name']}: {text or panel['y']} of {name} where it ends, at {where}")
    return {"figures": figures, "meant": meant}


def _unit(label: str) -> tuple[str, str]:
    """A label's words and its unit, where numbers carry it."""
    words, _, rest = label.rpartition(" (")
    return (words, rest[:-1]) if words and rest[:-1] in UNITS else (label, "")
