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


def require_own(out: Path, facts: str) -> None:
    """Raises BadInput where `out` holds a model that no training left there: one leaves its facts
    in a file of that name beside the model, and before that a checkpoint."""
    if any(out.glob(facts)) or any(out.glob("checkpoint*")):
        return
    if found := sorted(each.name for each in out.glob("model*.safetensors")):
        raise BadInput(
            f"{out}: holds a model already ({found[0]}, without a {facts} of this command); "
            "choose another folder"
        )


@contextmanager
def alone(out: Path, facts: str = "training.json") -> Iterator[None]:
    """Make `out` and hold it. Raises BadInput where another training does, there can be none, or it
    holds a model that is not of such a training (`require_own`)."""
    made(out)
    require_own(out, facts)
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
