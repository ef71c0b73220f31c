"""Lock on a folder that training writes into: two would take each other's checkpoints for theirs.

It goes with the process that holds it, however that ends.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from engine.core.errors import BadInput


def made(out: Path) -> Path:
    """`out`, a folder by now. Raises BadInput where there can be none."""
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as fault:
        raise BadInput(f"{out}: cannot train into it ({fault.strerror}); choose another") from None
    return out


@contextmanager
def alone(out: Path) -> Iterator[None]:
    """Make `out` and hold it. Raises BadInput where another training does, or there can be none."""
    made(out)
    try:
        import fcntl
    except ImportError:  # Windows has none
        yield
        return
    try:
        place = os.open(out, os.O_RDONLY)
    except OSError as fault:
        raise BadInput(f"{out}: cannot train into it ({fault.strerror}); choose another") from None
    try:
        fcntl.flock(place, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(place)
        raise BadInput(f"{out}: another training writes there; wait, or choose another") from None
    except OSError:  # a file system without locks
        pass
    try:
        yield
    finally:
        os.close(place)
