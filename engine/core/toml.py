"""Facts in TOML files, parsed once: every turn of a knob starts a run on the same facts."""

import tomllib
from copy import deepcopy
from functools import lru_cache
from pathlib import Path
from typing import Any


def load(path: Path) -> dict[str, Any]:
    """The tables of a TOML file, as it is on the disk now; the caller's own copy.

    Raises OSError, UnicodeDecodeError or tomllib.TOMLDecodeError, as reading and parsing do.
    """
    state = path.stat()
    return deepcopy(_parsed(path, state.st_mtime_ns, state.st_size))


@lru_cache(maxsize=128)
def _parsed(path: Path, changed: int, size: int) -> dict[str, Any]:
    return tomllib.loads(path.read_text(encoding="utf-8"))
