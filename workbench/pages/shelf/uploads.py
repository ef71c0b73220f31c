"""Uploaded files: a run file, or another tool's trace, read as a run."""

import tempfile
from pathlib import Path
from typing import Any

from engine.core.errors import BadInput
from engine.core.run import Run
from workbench.traces.read import SUFFIXES, log_of_ranks, open_log

UPLOAD = 256 << 20  # bytes of an opened file, at most


def read_uploads(data: Any, names: Any) -> tuple[Run, str]:
    """The run in one uploaded file, or in the traces of several ranks of one job, and what to call
    it. `data` and `names`: of one file, or lists. Raises BadInput."""
    files = data if isinstance(data, list) else [data]
    listed = [str(name) for name in (names if isinstance(names, list) else [names]) if name]
    listed += ["opened.run"] * (len(files) - len(listed))
    if len(files) == 1:
        return read_upload(files[0], listed[0]), listed[0]
    if sum(map(len, files)) > UPLOAD:
        raise BadInput(f"{len(files)} traces: at most {UPLOAD} bytes together can be opened here")
    other = next((name for name in listed if not _is_trace(name)), None)
    if other is not None:
        raise BadInput(f"{other}: several files must be the traces of one job's ranks (.json)")
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder) / f"{place}{_suffix(name)}" for place, name in enumerate(listed)]
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


def _is_trace(name: str) -> bool:
    return name.lower().endswith(SUFFIXES)


def _suffix(name: str) -> str:
    return next((s for s in SUFFIXES if name.lower().endswith(s)), ".run")


def read_upload(data: bytes, name: str) -> Run:
    """The run in an uploaded file, told apart by its name. Raises BadInput."""
    if len(data) > UPLOAD:
        raise BadInput(f"run file: {len(data)} bytes; at most {UPLOAD} can be opened here")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"opened{_suffix(name)}"
        path.write_bytes(data)
        try:
            return Run(open_log(path))
        except BadInput as fault:  # of the file as the person knows it
            raise BadInput(str(fault).replace(str(path), name).replace(path.name, name)) from None
