"""Printing for the command line: aligned tables, JSON, progress on stderr."""

import json
import math
import shutil
import sys
import textwrap
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from engine.core.errors import BadInput


def print_json(value: Any) -> None:
    """One JSON document on stdout; numbers JSON cannot hold become null."""
    print(json.dumps(_plain(value), ensure_ascii=False, indent=2))


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if value is None or isinstance(value, (str, bool, int)):
        return value
    if hasattr(value, "item"):  # numpy scalars
        return _plain(value.item())
    return str(value)


def print_table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Columns aligned left, the last one wrapped to the terminal's width."""
    rows = [[str(cell) for cell in row] for row in rows]
    widths = [max(len(row[i]) for row in [list(head), *rows]) for i in range(len(head) - 1)]
    indent = sum(widths) + 2 * len(widths)
    room = max(24, shutil.get_terminal_size((100, 24)).columns - indent)
    for row in [list(head), *rows]:
        lines = textwrap.wrap(row[-1], room) or [""]
        cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=False)]
        print("  ".join([*cells, lines[0]]).rstrip())
        for line in lines[1:]:
            print(" " * indent + line)


def seed(text: str) -> int:
    """An argument that is a seed; run files keep it in 64 bits."""
    value = int(text)
    if not -(2**63) <= value < 2**63:
        raise ValueError(text)
    return value


def check_place(path: str | None) -> None:
    """Raises BadInput where no file can be made at `path`, before the work it would hold."""
    if path is None:
        return
    place = Path(path)
    if not path or place.is_dir():
        raise BadInput(f"{path!r}: cannot write a file there; give a file's name")
    if not place.parent.is_dir():
        raise BadInput(f"{path}: cannot write, no folder {str(place.parent)!r}; make it first")


def say(text: str) -> None:
    """A line of progress, on stderr so that stdout stays for results."""
    print(text, file=sys.stderr, flush=True)
