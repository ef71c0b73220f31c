"""Regime maps on disk: those shipped with the workbench, and those drawn on this machine.

A map that is drawn here is kept under the user's home by all that it rests on (study, knobs, seed,
size and the project's own sources), so that the same question is answered at once. A shipped one is
a record: it says on which machine it was made.
"""

import hashlib
import json
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Any

from engine.core.config import Config, to_dict
from engine.core.errors import BadInput
from engine.core.limits import parse_json, read_bytes
from engine.core.paths import dataset, own_cache
from engine.core.writing import json_text, write_text
from workbench.regime import RegimeMap

SHIPPED = "regimes"  # the folder of the shipped data
SOURCES = ("engine", "workbench")


def shipped(slug: str) -> dict[str, RegimeMap]:
    """The maps shipped for a study, by name; none where it has none. Raises BadInput: damaged."""
    try:
        path = dataset(f"{SHIPPED}/{slug}.json")
    except BadInput:
        return {}
    return _read(path)


def saved(folder: Path, slug: str) -> dict[str, RegimeMap]:
    """A study's maps in a folder that `save` writes to. Raises BadInput: none, or damaged."""
    if not folder.is_dir():
        raise BadInput(f"{folder}: no such folder to save maps in; make it first")
    path = folder / f"{slug}.json"
    return _read(path) if path.exists() else {}


def save(folder: Path, slug: str, maps: list[RegimeMap]) -> Path:
    """Write a study's maps as `shipped` reads them; those of other names stay. Raises BadInput."""
    found = saved(folder, slug) | {each.name: each for each in maps}
    rows = [each.row() for each in found.values()]
    path = folder / f"{slug}.json"
    write_text(path, json_text(rows, ensure_ascii=False, indent=1) + "\n", "the maps")
    return path


def _read(path: Path) -> dict[str, RegimeMap]:
    try:
        rows = parse_json(read_bytes(path, "text_bytes"), path)
        maps = [RegimeMap.of_row(row) for row in rows]
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        raise BadInput(f"{path}: holds no maps; remove it, or give another folder") from None
    return {each.name: each for each in maps}


def known(
    slug: str, name: str, config: Config, seed: int, fast: bool, folder: Path | None = None
) -> RegimeMap | None:
    """The map of exactly this question as it was drawn here before."""
    path = _path(slug, name, config, seed, fast, folder)
    try:
        return RegimeMap.of_row(parse_json(read_bytes(path, "text_bytes"), path))
    except (
        OSError,
        BadInput,
        ValueError,
        KeyError,
        TypeError,
        AttributeError,
    ):  # none, or a damaged one: drawn again
        return None


def keep(
    drawn: RegimeMap, slug: str, config: Config, seed: int, folder: Path | None = None
) -> None:
    """Keep a map; where the disk refuses, it is drawn again next time."""
    path = _path(slug, drawn.name, config, seed, drawn.fast, folder)
    with suppress(OSError, BadInput):
        path.parent.mkdir(parents=True, exist_ok=True)
        write_text(path, json_text(drawn.row()), "the map")


def _path(slug: str, name: str, config: Config, seed: int, fast: bool, folder: Path | None) -> Path:
    question: list[Any] = [slug, name, to_dict(config), seed, fast, _sources()]
    text = json.dumps(question, sort_keys=True, default=str)
    digest = hashlib.sha256(text.encode()).hexdigest()[:24]
    return (folder or own_cache() / SHIPPED) / f"{slug}-{digest}.json"


@lru_cache(maxsize=1)
def _sources() -> str:
    """A checksum of the sources' names, sizes and times: an edit makes every kept map another."""
    root = Path(__file__).resolve().parent.parent
    files = sorted(path for name in SOURCES for path in (root / name).rglob("*.py"))
    facts = [(str(p.relative_to(root)), p.stat().st_size, p.stat().st_mtime_ns) for p in files]
    return hashlib.sha256(json.dumps(facts).encode()).hexdigest()
