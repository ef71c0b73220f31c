"""Accuracy against width, the paths' budget held or their total, for the view of curves.

In comes a run's config, out come blobs of (width, mean, low, high) with 95% intervals.
"""

from typing import Any

import numpy as np

from engine.core.config import update
from engine.core.events import AnyEvent
from engine.core.intervals import wilson
from engine.reasoning.paths.config import PathsConfig
from engine.reasoning.paths.solve import Report, open_paths, solve

WIDTHS = (1, 2, 4, 8)
TOTAL = 224  # tokens of all paths, where the total is held
PROBLEMS, PAGES = 32, 4096  # solved at once, and what they take
EACH, ALL = "Equal budget for each path", "Equal budget for all paths"
AXES = {"x": "paths", "y": "problems solved (share)", "log_x": True}
FACTS = {EACH: AXES, ALL: AXES}
LINES = ("summary", "majority vote", "any path right (bound)")


def curves(config: PathsConfig, report: Report) -> dict[str, np.ndarray]:
    """Blobs by name; the same problems at every width. The log does not hear of them."""
    config = update(config, {"pages": PAGES, "page_size": 16, "keep_logits": False})
    mind = open_paths(config)
    rows: dict[str, list[tuple[float, float, float, float]]] = {}
    plans = [(panel, width) for panel in (EACH, ALL) for width in WIDTHS]
    for done, (panel, width) in enumerate(plans):
        report("solving at every width", done, len(plans))
        changes = {
            "width": width, "total": TOTAL if panel == ALL else 0, "problems": PROBLEMS,
            "together": PROBLEMS,
        }  # fmt: skip
        scores_PK, _ = solve(update(config, changes), mind, unheard, nothing, unreported)
        for place, line in enumerate(LINES):
            right = float(scores_PK[:, place].sum())
            point = (width, right / len(scores_PK), *wilson(right, len(scores_PK)))
            rows.setdefault(f"curve/{panel}/{line}", []).append(point)
    return {name: np.array(points).T for name, points in rows.items()}


def unheard(event: AnyEvent) -> None:
    """Nobody looks at the problems of a sweep."""


def nothing(now: float) -> list[dict[str, Any]]:
    """Nobody says anything to it."""
    return []


def unreported(what: str, done: int, of: int) -> None:
    """Its own progress is told by width."""
