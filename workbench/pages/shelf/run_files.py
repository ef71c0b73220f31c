"""Run files below a folder, and the check that a path asked for stays inside it."""

import os
import time
from pathlib import Path
from typing import Any

from engine.core.errors import BadInput

SUFFIX = ".run"
DEEP = 6  # folders below the root that are looked into
MOST = 500  # files listed
SECONDS = 2.0  # a listing takes at most
SKIPPED = frozenset({"node_modules", "__pycache__", "site-packages"})


def run_files(root: Path) -> tuple[list[dict[str, Any]], bool]:
    """Path (relative to `root`, with /), bytes and time of change of each run, newest first.

    The flag says whether that is all of them. Hidden folders and links to folders are not entered.
    """
    found, until = [], time.monotonic() + SECONDS
    complete = True
    for folder, inner, names in os.walk(root):
        here = Path(folder)
        deep = len(here.relative_to(root).parts) >= DEEP
        inner[:] = sorted(n for n in inner if not deep and n not in SKIPPED and n[0] != ".")
        found += [here / name for name in names if name.endswith(SUFFIX) and name[0] != "."]
        if len(found) > MOST or time.monotonic() > until:
            complete = False
            break
    rows: list[dict[str, Any]] = []
    for path in sorted(found, key=_changed, reverse=True):
        if len(rows) == MOST:  # where each leads is looked up for those listed alone
            break
        if (row := _row(path, root)) is not None:
            rows.append(row)
    rows.sort(key=lambda row: -row["changed"])
    return rows, complete


def _changed(path: Path) -> float:
    """When it was changed, of a link itself; long ago where it has gone."""
    try:
        return path.lstat().st_mtime
    except OSError:
        return float("-inf")


def _row(path: Path, root: Path) -> dict[str, Any] | None:
    """None where the file has gone or leads outside."""
    try:
        stat = inside(root, path.relative_to(root).as_posix()).stat()
    except (OSError, BadInput):
        return None
    place = path.relative_to(root).as_posix()
    return {"path": place, "bytes": stat.st_size, "changed": stat.st_mtime}


def inside(root: Path, asked: str, more: tuple[str, ...] = ()) -> Path:
    """The file at `asked`, a path relative to `root`, that ends like a run or as one of `more`.

    Raises BadInput where it leads outside. Links are followed first, so that one which points out
    of the folder is refused; so are hidden files and folders, as Jupyter's own file routes do.
    """
    parts = Path(asked).parts
    wrong = any(part.startswith(".") for part in parts) or "\0" in asked or not asked
    if wrong or Path(asked).is_absolute() or not asked.endswith((SUFFIX, *more)):
        raise BadInput(
            f"run file {asked[:80]!r}: give a {' or '.join((SUFFIX, *more))} file below the "
            "server's folder"
        )
    try:
        path = (root / asked).resolve()
        there = path.is_relative_to(root.resolve()) and path.is_file()
    except (OSError, RuntimeError):  # a name too long; links in a circle
        there = False
    if not there:
        raise BadInput(f"run file {asked[:80]!r}: not below the server's folder")
    return path
