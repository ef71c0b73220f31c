"""Files written whole or not at all: beside the old one first, then moved into its place.

A full disk, a lost permission or a folder that went leaves what was there, and one line.
"""

import errno
import json
import math
import os
import secrets
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from engine.core.errors import BadInput

PART = ".part"
ABANDONED = 3600.0  # seconds since somebody last wrote to such a file


@contextmanager
def written(path: Path, what: str, also: tuple[type[Exception], ...] = ()) -> Iterator[Path]:
    """Gives a place beside `path` to write to; it becomes `path` once the block is done.

    `also`: what a library raises for a failed write besides OSError. Raises BadInput, in which
    `what` is called by name; then `path` is as it was.
    """
    if not path.name or path.is_dir():
        raise unwritten(path, what, OSError(errno.EISDIR, "a folder, not a file"))
    if path.exists() and not path.is_file():
        raise unwritten(path, what, OSError(errno.EINVAL, "a device or a pipe, not a file"))
    part = _beside(path)
    faults: tuple[type[Exception], ...] = (OSError, *also)
    try:
        yield part
        with suppress(OSError):  # there was none, or it is not ours
            shutil.copymode(path, part)  # who may read it stays as it was
        os.replace(part, path)
    except faults as fault:
        raise unwritten(path, what, fault) from None
    finally:
        with suppress(OSError):  # its folder has gone, or may not be changed any more
            part.unlink(missing_ok=True)


def _beside(path: Path) -> Path:
    """A new name beside `path`, so that of two who write at once the last to end stands there
    whole. What a process that was killed left there long ago goes."""
    start = f".{path.name}."
    with suppress(OSError):
        for entry in os.scandir(path.parent):
            ours = entry.name.startswith(start) and entry.name.endswith(PART)
            if ours and entry.stat(follow_symlinks=False).st_mtime < time.time() - ABANDONED:
                os.unlink(entry)
    return path.with_name(f"{start}{secrets.token_hex(3)}{PART}")


def write_text(path: Path, text: str, what: str) -> None:
    """Write `text` whole, where links lead; into a pipe or device as it is. Raises BadInput."""
    path = Path(os.path.realpath(path))
    if path.exists() and not path.is_file():
        try:
            path.write_text(text, encoding="utf-8")
        except OSError as fault:
            raise unwritten(path, what, fault) from None
        return
    with written(path, what) as part:
        part.write_text(text, encoding="utf-8")


def json_text(value: Any, **how: Any) -> str:
    """`value` as `json.dumps` writes it; numbers that JSON has none of become null."""
    try:
        return json.dumps(value, allow_nan=False, **how)
    except ValueError:
        return json.dumps(_finite(value), allow_nan=False, **how)


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {_finite(key): _finite(held) for key, held in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(held) for held in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def unwritten(path: Path, what: str, fault: Exception) -> BadInput:
    """The line for a write that failed; what was there before is whole."""
    why = (getattr(fault, "strerror", None) or str(fault) or type(fault).__name__)[:120]
    return BadInput(
        f"{path}: cannot write {what} ({why}); make room or choose another place, and repeat"
    )
