"""A run carried whole in its own Chrome trace: other viewers pass over it, here it opens as it was.

It stands first in the file, as the run file in base64; a run longer than `MOST` goes without.
"""

import base64
import binascii
import gzip
import re
import tempfile
import zlib
from pathlib import Path

from engine.core.chrome.pieces import MAGIC, Pieces
from engine.core.errors import BadInput
from engine.core.file import load, packed
from engine.core.limits import open_regular
from engine.core.log import Log

KEY = "parallelWorkbenchRun"
BEGINS = f'{{"{KEY}": "'.encode()
CARRIED = re.compile(BEGINS + rb"([A-Za-z0-9+/=]*)\"")
MOST = 32 << 20  # bytes of base64


def carried(log: Log) -> dict[str, str]:
    """What a trace of this run begins with; nothing where that is too long."""
    data = base64.b64encode(packed(log))
    return {KEY: data.decode()} if len(data) <= MOST else {}


def own_run(path: Path) -> Log | None:
    """The run that the trace at `path` carries; None where it carries none.

    Raises BadInput for one that is damaged.
    """
    if not _begins_so(path):
        return None
    pieces = Pieces(path)
    next(iter(pieces), None)
    found = CARRIED.match(pieces.head)
    try:
        data = base64.b64decode(found[1] if found else b"-", validate=True)
    except binascii.Error:
        raise BadInput(f"{path}: the run in it is damaged; export it again") from None
    with tempfile.TemporaryDirectory() as folder:
        own = Path(folder) / "own.run"
        own.write_bytes(data)
        try:
            return load(own)
        except BadInput as fault:
            raise BadInput(str(fault).replace(str(own), f"{path}, the run in it")) from None


def _begins_so(path: Path) -> bool:
    """Whether that is how the file begins, packed or not; a file that cannot be read does not."""
    try:
        with open_regular(path) as stream:
            start = stream.read(len(BEGINS))
            if not start.startswith(MAGIC):
                return start == BEGINS
            stream.seek(0)
            with gzip.open(stream) as unpacked:
                return unpacked.read(len(BEGINS)) == BEGINS
    except (OSError, EOFError, BadInput, zlib.error):
        return False
