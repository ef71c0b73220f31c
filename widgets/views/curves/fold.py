"""Fold of `Blob` events named `curve/<panel>/<series>` into panels of lines.

A blob is [2, n] float64 (x, y) or [4, n] (x, y, low, high). A later blob of the same name takes the
place of the earlier one. `facts["curves"]` of the header: panel -> {"x", "y": axis labels with the
unit in brackets, "log_x", "log_y", "zero"}; "zero": false lets a linear y axis start above nought.
`facts["question"]`: what the curves answer. A series that ends in " (bound)" is a limit, in
" (modelled)" a modelled line.
"""

from typing import Any, Self

import numpy as np

from engine.core.events import AnyEvent, Blob, Closed, Opened
from engine.core.plot import BOUND, MODELLED, PREFIX
from widgets.chart.picture import extremes
from widgets.fold import Fold, nothing
from widgets.views.curves.last_points import last_points

QUESTION = "How does it grow, and where does it bend?"
EMPTY = "No curves yet. Start a run: each point is drawn once it has been measured."
KINDS = (BOUND, MODELLED)


class Curves(Fold):
    """The newest blob of every curve: panels as the header names them, then in order of appearance
    as series are."""

    def __init__(self) -> None:
        self.panels: dict[str, dict[str, str]] = {}  # panel -> series -> ref
        self.facts: dict[str, dict[str, Any]] = {}
        self.clock, self.run, self.question = "wall", "", QUESTION
        self.opened = self.closed = False

    def add(self, event: AnyEvent) -> None:
        if type(event) is Blob and event.name.startswith(PREFIX):
            panel, _, series = event.name[len(PREFIX) :].partition("/")
            self.panels.setdefault(panel, {})[series] = event.ref
        elif type(event) is Opened:
            facts = event.facts.get("curves", {})
            self.facts = facts if isinstance(facts, dict) else {}
            self.clock, self.opened = event.clock, True
            self.question = str(event.facts.get("question", QUESTION))
            self.run = f"{event.study} {event.seed} {len(str(event.config))}"
        elif type(event) is Closed:
            self.closed = True

    def copy(self) -> Self:
        other = type(self)()
        other.__dict__.update(self.__dict__)
        other.panels = {panel: dict(series) for panel, series in self.panels.items()}
        return other

    def frame(self) -> dict[str, Any]:
        """`panels`: name, labels and series; each series is `count` rows of `x`, `y`, `low`,
        `high` from `first` on."""
        hues: dict[str, int] = {}
        panels, columns, left_out, wrong = [], [np.zeros((4, 0))], 0, []
        at = 0
        for name in (title for panel in self.panels.values() for title in panel):
            base, kind = _kind(name.replace("_", " "))
            if kind != "bound":  # hues stay as panels come, wherever they stand
                hues.setdefault(base, len(hues))
        for name in dict.fromkeys([*filter(self.panels.get, self.facts), *self.panels]):
            series, lines = self.panels[name], []
            for written, ref in series.items():
                title = written.replace("_", " ")  # a policy's kind, as knobs show it
                found = _points(self.blobs.get(ref))
                if found is None:
                    wrong.append(f"{name}/{written}")
                    continue
                kept = found[:, extremes(found[1])]
                left_out += found.shape[1] - kept.shape[1]
                base, kind = _kind(title)
                modelled = kind == "modelled" or (self.clock == "virtual" and kind == "")
                lines.append({
                    "name": title, "base": base, "hue": hues.get(base, -1), "first": at,
                    "count": kept.shape[1], "bound": kind == "bound", "modelled": modelled,
                })  # fmt: skip
                columns.append(kept)
                at += kept.shape[1]
            panels.append({"name": name, **self._axes(name), "series": lines})
        x, y, low, high = np.concatenate(columns, axis=1)
        return {
            "question": self.question,
            "empty": "" if at else nothing(EMPTY, self.opened, self.closed),
            "modelled": self.clock == "virtual",
            "run": self.run,
            "panels": panels,
            "x": x,
            "y": y,
            "low": low,
            "high": high,
            "points": at + left_out,
            "wrong": wrong,
            **last_points(panels, x, y),
        }

    def _axes(self, panel: str) -> dict[str, Any]:
        facts = self.facts.get(panel, {})
        return {
            **{axis: str(facts.get(axis, "")) for axis in ("x", "y")},
            **{axis: bool(facts.get(axis, False)) for axis in ("log_x", "log_y")},
            "zero": bool(facts.get("zero", True)),
        }


def _kind(series: str) -> tuple[str, str]:
    """What a series is called without its kind, and the kind: "bound", "modelled" or ""."""
    for ending in KINDS:
        if series.endswith(ending):
            return series.removesuffix(ending), ending.strip(" ()")
    return series, ""


def _points(array: np.ndarray | None) -> np.ndarray | None:
    """[4, n] in the order given, low and high NaN where there are none; None if it is no curve."""
    if array is None or array.ndim != 2 or array.shape[0] not in (2, 4):
        return None
    rows = np.full((4, array.shape[1]), np.nan)
    rows[: array.shape[0]] = array
    return rows
