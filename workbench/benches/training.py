"""Training on real ranks beside torch's own ways, on the same model and ranks, turn about.

Each file of `_training` is a section: `rows(full, say)` measures in that run and gives rows with
the keys of `KEYS`.
"""

import importlib
import pkgutil
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

NAME = "training"
ABOUT = "steps of training on real ranks as ratios to torch's own, interleaved in one run"

KEYS = ("name", "what", "ranks", "seconds", "peer_seconds", "ratio", "low", "high", "holds_to")


def sections() -> dict[str, ModuleType]:
    """Every section by name, found by file."""
    here = [str(Path(__file__).parent / "_training")]
    names = sorted(m.name for m in pkgutil.iter_modules(here) if not m.name.startswith("_"))
    return {name: importlib.import_module(f"workbench.benches._training.{name}") for name in names}


def run(full: bool, say: Callable[[str], None]) -> list[dict[str, Any]]:
    """The rows of every section, one section after another."""
    found: list[dict[str, Any]] = []
    for name, section in sections().items():
        say(f"training: {name}")
        found += [{"section": name, **row} for row in section.rows(full, say)]
    return found


def table(found: list[dict[str, Any]]) -> list[tuple[str, ...]]:
    """Head and rows: median times, and the median ratio with half of the rounds around it."""
    head = ("section", "what", "ranks", "ours", "torch", "ratio", "half within", "asked for")
    return [head, *(_cells(row) for row in found)]


def _cells(row: dict[str, Any]) -> tuple[str, ...]:
    return (
        row["section"],
        row["what"],
        str(row["ranks"]),
        f"{1e3 * row['seconds']:.1f} ms",
        f"{1e3 * row['peer_seconds']:.1f} ms",
        f"{row['ratio']:.3f}×",
        f"{row['low']:.3f} to {row['high']:.3f}",
        row["holds_to"] or "",
    )
