"""Facts in TOML files, parsed once: every turn of a knob starts a run on the same facts."""

import re
import tomllib
from copy import deepcopy
from datetime import date, time
from functools import lru_cache
from pathlib import Path
from typing import Any

from engine.core.errors import BadInput
from engine.core.limits import check, depth, limits, over, read_text

PART = r"""(?:[\w-]++|"[^"\n]*"|'[^'\n]*')"""  # of a key such as engine.executor."kind"


def load(path: Path) -> dict[str, Any]:
    """The tables of a TOML file, as it is on the disk now; the caller's own copy.

    Raises OSError, BadInput, UnicodeDecodeError or tomllib.TOMLDecodeError, as reading and parsing.
    """
    state = path.stat()
    return deepcopy(_parsed(path, state.st_mtime_ns, state.st_size))


@lru_cache(maxsize=128)
def _parsed(path: Path, changed: int, size: int) -> dict[str, Any]:
    text, most = read_text(path, "toml_bytes"), limits().nesting
    # A key of n parts costs the parser n² of memory, and is n tables within each other.
    if re.search(rf"(?<![\w-]){PART}(?:[ \t]*\.[ \t]*{PART}){{{most},}}", text):
        raise over(path, f"a key of more than {most} parts", "nesting")
    try:
        found = tomllib.loads(text)
    except RecursionError:
        raise over(path, "lists within lists beyond count", "nesting") from None
    except tomllib.TOMLDecodeError:
        raise
    except ValueError:  # of Python's, which converts no number of thousands of digits
        raise BadInput(f"{path}: a number of thousands of digits; give a shorter one") from None
    check(path, "levels of lists and tables", depth(found), "nesting")
    return {key: _told(value) for key, value in found.items()}


def _told(value: Any) -> Any:
    """The same with days and times as text: no field takes one, and JSON knows none."""
    if isinstance(value, dict):
        return {key: _told(part) for key, part in value.items()}
    if isinstance(value, list):
        return [_told(part) for part in value]
    return value.isoformat() if isinstance(value, date | time) else value
