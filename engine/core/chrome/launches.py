"""Launches in a trace: which call on the host started each kernel or copy of an accelerator.

A profiler gives a call of the device's library and all that it starts the same correlation id.
"""

from collections.abc import Mapping

import msgspec
import numpy as np

from engine.core.chrome.pieces import Entry
from engine.core.events import Blob
from engine.core.log import Log

NAME = "launches"  # of the Blob beside the log
CALLS = ("cuda_runtime", "cuda_driver", "hip_runtime", "hip_driver", "Runtime", "Driver")
NOBODY = -1


class _Correlated(msgspec.Struct, gc=False):
    """The one argument that matters here."""

    correlation: int = NOBODY


ARGUMENTS = msgspec.json.Decoder(_Correlated)


class Launches:
    """Rows of calls and of what ran on a device, by correlation id, while a trace is read."""

    def __init__(self) -> None:
        self.call: dict[int, int] = {}  # correlation -> row of the first call that has it
        self.started: list[tuple[int, int]] = []  # row on a device, correlation

    def note(self, entries: list[Entry], first: int, on_device: frozenset[str]) -> None:
        """Look at spans that become rows `first` on; kinds `on_device` are of a device's work."""
        for row, entry in enumerate(entries, first):
            if entry.cat in on_device:
                found = _correlation(entry)
                if found != NOBODY:
                    self.started.append((row, found))
            elif entry.cat in CALLS:
                found = _correlation(entry)
                if found != NOBODY:
                    self.call.setdefault(found, row)

    def by_row(self, count: int, order: np.ndarray) -> np.ndarray:
        """Of each of `count` spans, put in `order`, the place of the call that started it;
        `NOBODY` where none is known."""
        by = np.full(count, NOBODY, np.int32)
        place = np.empty(count, np.int32)
        place[order] = np.arange(count, dtype=np.int32)
        for row, correlation in self.started:
            call = self.call.get(correlation, NOBODY)
            if call != NOBODY:
                by[place[row]] = place[call]
        return by


def _correlation(entry: Entry) -> int:
    try:
        return ARGUMENTS.decode(entry.args).correlation
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return NOBODY


def tell(log: Log, by: np.ndarray) -> None:
    """Put `by` beside the log and emit the event that names it; nothing where nobody is known."""
    if (by != NOBODY).any():
        log.blobs[NAME] = by.astype(np.int32)
        log.emit(Blob(log.duration, NAME, NAME, [len(by)]))


def told(event: Blob, blobs: Mapping[str, np.ndarray], count: int) -> np.ndarray:
    """The launches that `event` names, of `count` spans. Of a damaged log: nobody's."""
    by = blobs.get(event.ref)
    if by is None or by.shape != (count,) or by.dtype.kind != "i":
        return np.full(count, NOBODY, np.int32)
    return np.where((by >= 0) & (by < count), by, NOBODY).astype(np.int32)
