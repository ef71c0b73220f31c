"""Facts in TOML files, parsed once: every turn of a knob starts a run on the same facts."""

import tomllib
from copy import deepcopy
from functools import lru_cache
from pathlib import Path
from typing import Any

from engine.core.limits import read_text


def load(path: Path) -> dict[str, Any]:
    """The tables of a TOML file, as it is on the disk now; the caller's own copy.

    Raises OSError, BadInput, UnicodeDecodeError or tomllib.TOMLDecodeError, as reading and parsing.
    """
    state = path.stat()
    return deepcopy(_parsed(path, state.st_mtime_ns, state.st_size))


@lru_cache(maxsize=128)
def _parsed(path: Path, changed: int, size: int) -> dict[str, Any]:
    return tomllib.loads(read_text(path, "config_bytes"))
