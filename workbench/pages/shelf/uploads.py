"""Uploaded files: a run file, or another tool's trace, read as a run."""

import tempfile
from pathlib import Path

from engine.core.errors import BadInput
from engine.core.run import Run
from workbench.trace_in import SUFFIXES, open_log

UPLOAD = 256 << 20  # bytes of an opened file, at most


def read_upload(data: bytes, name: str) -> Run:
    """The run in an uploaded file, told apart by its name. Raises BadInput."""
    if len(data) > UPLOAD:
        raise BadInput(f"run file: {len(data)} bytes; at most {UPLOAD} can be opened here")
    with tempfile.TemporaryDirectory() as folder:
        suffix = next((s for s in SUFFIXES if name.lower().endswith(s)), ".run")
        path = Path(folder) / f"opened{suffix}"
        path.write_bytes(data)
        try:
            return Run(open_log(path))
        except BadInput as fault:  # of the file as the person knows it
            raise BadInput(str(fault).replace(str(path), name).replace(path.name, name)) from None
