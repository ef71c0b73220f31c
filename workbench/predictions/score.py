"""How far predictions are from measured runs: error, bias, what intervals hold, the worst rows.

In come runs that a table measured beside what is predicted of them; out come rows of a report. An
error is predicted over measured time, less one.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from workbench.predictions.prediction import Estimate


@dataclass(frozen=True, slots=True)
class Scored:
    """One measured figure beside its prediction. `where`: file and line; `group`: rows reported
    together (a table's model and device)."""

    where: str
    kind: str
    group: str
    what: str
    measured: float
    predicted: Estimate

    @property
    def error(self) -> float:
        return self.predicted.value / self.measured - 1

    @property
    def covered(self) -> bool:
        return self.predicted.low <= self.measured <= self.predicted.high

    def row(self) -> dict[str, Any]:
        return {
            "where": self.where,
            "kind": self.kind,
            "group": self.group,
            "what": self.what,
            "measured": self.measured,
            "error": self.error,
            "covered": self.covered,
            **self.predicted.row(),
        }


def report(rows: Sequence[Scored]) -> list[dict[str, Any]]:
    """A line for each kind and group, and one for each kind of several groups together."""
    groups: dict[tuple[str, str], list[Scored]] = defaultdict(list)
    for row in rows:
        groups[row.kind, row.group].append(row)
    kinds = dict.fromkeys(row.kind for row in rows)
    for kind in kinds:
        if sum(key[0] == kind for key in groups) > 1:
            groups[kind, "all"] = [row for row in rows if row.kind == kind]
    return [
        {"kind": kind, "group": group, **_errors(each)} for (kind, group), each in groups.items()
    ]


def _errors(rows: Sequence[Scored]) -> dict[str, Any]:
    errors = np.array([row.error for row in rows])
    return {
        "rows": len(rows),
        "mean_error": float(np.abs(errors).mean()),
        "median_error": float(np.median(np.abs(errors))),
        "worst_error": float(np.abs(errors).max()),
        "bias": float(errors.mean()),
        "covered": float(np.mean([row.covered for row in rows])),
    }


def worst(rows: Sequence[Scored], count: int) -> list[Scored]:
    """The rows furthest off."""
    return sorted(rows, key=lambda row: -abs(row.error))[:count]
