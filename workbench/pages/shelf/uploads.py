"""Uploaded files: a run file, or another tool's trace, read as a run."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from engine.core.errors import BadInput
from engine.core.run import Run
from workbench.traces.read import SUFFIXES, log_of_ranks, open_log

NAME = 200  # characters of a file's name that are kept
NOTHING = "nothing came: the file is empty, or it was not sent; choose one again"
UPLOAD = 256 << 20  # bytes of an opened file, at most


def read_uploads(data: Any, names: Any) -> tuple[Run, str]:
    """The run in one uploaded file, or in the traces of several ranks of one job, and what to call
    it. `data` and `names`: of one file, or lists. Raises BadInput."""
    files = data if isinstance(data, list) else [data]
    listed = [str(name)[:NAME] for name in (names if isinstance(names, list) else [names]) if name]
    listed = [*listed, *["opened.run"] * len(files)][: len(files)]
    if not files or not all(isinstance(one, bytes) for one in files):
        raise BadInput(NOTHING)
    if len(files) == 1:
        return read_upload(files[0], listed[0]), listed[0]
    if sum(map(len, files)) > UPLOAD:
        raise BadInput(f"{len(files)} traces: at most {UPLOAD} bytes together can be opened here")
    other = next((name for name in listed if not _is_trace(name)), None)
    if other is not None:
        raise BadInput(f"{other}: several files must be the traces of one job's ranks (.json)")
    with _room() as folder:
        paths = [folder / f"{place}{_suffix(name)}" for place, name in enumerate(listed)]
        for path, one in zip(paths, files, strict=True):
            path.write_bytes(one)
        try:
            return Run(log_of_ranks(paths)), f"{len(files)} ranks, {listed[0]}"
        except BadInput as fault:
            place = next((i for i, path in enumerate(paths) if str(path) in str(fault)), None)
            said = (
                str(fault)
                if place is None
                else str(fault).replace(str(paths[place]), listed[place])
            )
            raise BadInput(said) from None


@contextmanager
def _room() -> Iterator[Path]:
    """A folder for as long as files are read. Raises BadInput where there is no room for them."""
    try:
        with tempfile.TemporaryDirectory() as folder:
            yield Path(folder)
    except OSError as fault:
        raise no_room(fault) from None


def no_room(fault: OSError) -> BadInput:
    """The line for a file that cannot be put down to be read."""
    return BadInput(
        f"the file cannot be put down here to be read ({fault.strerror or fault}); make room in "
        "the folder for temporary files, or open it by `workbench open FILE`"
    )


def _is_trace(name: str) -> bool:
    return name.lower().endswith(SUFFIXES)


def _suffix(name: str) -> str:
    return next((s for s in SUFFIXES if name.lower().endswith(s)), ".run")


def read_upload(data: bytes, name: str) -> Run:
    """The run in an uploaded file, told apart by its name. Raises BadInput."""
    if len(data) > UPLOAD:
        raise BadInput(f"run file: {len(data)} bytes; at most {UPLOAD} can be opened here")
    with _room() as folder:
        path = folder / f"opened{_suffix(name)}"
        path.write_bytes(data)
        try:
            return Run(open_log(path))
        except BadInput as fault:  # of the file as the person knows it
            raise BadInput(str(fault).replace(str(path), name).replace(path.name, name)) from None
