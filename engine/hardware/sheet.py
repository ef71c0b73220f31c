"""Reading of a data sheet: one TOML file of facts with their sources becomes one frozen Config."""

import tomllib
from functools import lru_cache
from os.path import isfile
from pathlib import Path
from typing import TypeVar

from pydantic import ValidationError

from engine.core.config import Config
from engine.core.errors import BadInput
from engine.core.names import suggest
from engine.core.toml import load

SheetT = TypeVar("SheetT", bound=Config)


def sheets(folder: Path) -> list[str]:
    """The names of the data sheets in `folder`, sorted."""
    return sorted(path.stem for path in folder.glob("*.toml"))


def named(kind: type[SheetT], folder: Path, name: str) -> SheetT:
    """The data sheet `name` of `folder`. Raises BadInput with the nearest names there are."""
    path = folder / f"{name}.toml"
    if path.stem != name or not isfile(path):
        what = kind.__name__.lower()
        raise BadInput(f"{what} {name!r}: no data sheet; {suggest(name, sheets(folder))}")
    return read(kind, path)


def read(kind: type[SheetT], path: Path) -> SheetT:
    """The sheet in the file `path`, checked once. Raises BadInput naming the file and the first bad
    field."""
    try:
        state = path.stat()
        return _read(kind, path, state.st_mtime_ns, state.st_size)
    except OSError as fault:
        raise BadInput(f"{path}: cannot read ({fault.strerror}); give a TOML file") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as fault:
        raise BadInput(f"{path}: not a TOML file ({fault}); mend that line") from None
    except RecursionError:
        raise BadInput(f"{path}: nested too deeply; a data sheet is flat tables") from None


# Searches ask for the same few sheets thousands of times; frozen, they can be shared.
@lru_cache(maxsize=256)
def _read(kind: type[SheetT], path: Path, changed: int, size: int) -> SheetT:
    facts = load(path)
    try:
        return kind.model_validate({"slug": path.stem, **facts})
    except ValidationError as fault:
        first = fault.errors()[0]
        where = ".".join(str(part) for part in first["loc"]) or "the sheet"
        what = first["msg"].removeprefix("Value error, ")
        raise BadInput(f"{path}: field {where!r}: {what[0].lower()}{what[1:]}") from None
