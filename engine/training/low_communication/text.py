"""The text every replica learns from: the held-out sources shipped with a model, as characters.

The same on every Python version, so losses compare between machines.
"""

from dataclasses import dataclass

import numpy as np

from engine.core.paths import dataset

SHIPPED = "models/stdlib-5m/validation.txt"
PRINTABLE = 95  # from the blank, number 32, on
VOCABULARY = PRINTABLE + 2  # the new line first, whatever else last
HELD_OUT = 8  # one part in this many is kept for judging


@dataclass(frozen=True, slots=True)
class Text:
    """uint16 ids of both parts."""

    training: np.ndarray
    held_out: np.ndarray


def shipped_text() -> Text:
    """The shipped text, its end held out."""
    raw = np.frombuffer(dataset(SHIPPED).read_bytes(), np.uint8).astype(np.int64)
    ids = np.where((raw >= 32) & (raw < 32 + PRINTABLE), raw - 31, VOCABULARY - 1)
    ids = np.where(raw == ord("\n"), 0, ids).astype(np.uint16)
    cut = len(ids) - len(ids) // HELD_OUT
    return Text(ids[:cut], ids[cut:])
