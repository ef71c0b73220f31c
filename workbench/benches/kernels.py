"""The kernels against this machine's limits and against torch, section by section.

Each file of `_kernels` is a section: `rows(full, say)` measures in that run, peers interleaved, and
gives rows with the keys of `KEYS`; a section that cannot run here says why in a row of its own.
"""

import importlib
import pkgutil
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

NAME = "kernels"
ABOUT = "every kernel against the measured roofs and against torch, as ratios inside one run"

KEYS = (
    "name",
    "what",
    "seconds",
    "limit_seconds",
    "fraction_of_limit",
    "ratio",
    "ratio_to",
    "holds_to",
)


def sections() -> dict[str, ModuleType]:
    """Every section by name, found by file."""
    here = [str(Path(__file__).parent / "_kernels")]
    names = sorted(m.name for m in pkgutil.iter_modules(here) if not m.name.startswith("_"))
    return {n: importlib.import_module(f"workbench.benches._kernels.{n}") for n in names}


def run(full: bool, say: Callable[[str], None]) -> list[dict[str, Any]]:
    """The rows of every section, one section after another."""
    found: list[dict[str, Any]] = []
    for name, section in sections().items():
        say(f"kernels: {name}")
        found += [{"section": name, **row} for row in section.rows(full, say)]
    return found


def table(found: list[dict[str, Any]]) -> list[tuple[str, ...]]:
    """Head and rows for a person, in units that fit."""
    head = ("section", "kernel", "time", "limit", "of limit", "ratio", "to", "asked for", "what")
    return [head, *(_cells(row) for row in found)]


def _cells(row: dict[str, Any]) -> tuple[str, ...]:
    fraction, ratio = row["fraction_of_limit"], row["ratio"]
    return (
        row["section"],
        row["name"],
        duration(row["seconds"]),
        duration(row["limit_seconds"]),
        "" if fraction is None else f"{fraction:.0%}",
        "" if ratio is None else f"{ratio:.3g}×",
        row["ratio_to"] or "",
        row["holds_to"] or "",
        row["what"],
    )


def duration(value: float | None) -> str:
    """A time in the unit that fits; "" for none."""
    if value is None:
        return ""
    for factor, unit in ((1.0, "s"), (1e3, "ms"), (1e6, "µs")):
        if value * factor >= 1:
            return f"{value * factor:.3g} {unit}"
    return f"{value * 1e9:.3g} ns"
