"""Very many spans at once: columns beside the log, told by one `Blob` event.

A trace of millions of spans is read, kept and drawn as columns; one event each would not fit.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from engine.core.events import Blob, Span
from engine.core.log import Log

NAME = "spans"  # of the Blob, and of the header's fact that holds the words
ROWS = ("start", "stop", "lane", "name", "tag", "flops", "bytes")


@dataclass(frozen=True, slots=True)
class Spans:
    """`start`, `stop` in seconds; `lane`, `name` and `tag` are places in `lanes`, `names`, `tags`.

    In order of `stop`, as events are.
    """

    start: np.ndarray
    stop: np.ndarray
    lane: np.ndarray
    name: np.ndarray
    tag: np.ndarray
    flops: np.ndarray
    bytes: np.ndarray
    lanes: list[str]
    names: list[str]
    tags: list[str]

    def __len__(self) -> int:
        return len(self.start)

    def words(self) -> dict[str, list[str]]:
        """What the header says of them, under `NAME` in its facts."""
        return {"lanes": self.lanes, "names": self.names, "tags": self.tags}

    def events(self, rows: np.ndarray | None = None) -> Iterator[Span]:
        """The spans as events, all or those at `rows`."""
        for row in np.arange(len(self)) if rows is None else rows:
            lane, name, tag = (
                words[int(place[row])]
                for words, place in (
                    (self.lanes, self.lane),
                    (self.names, self.name),
                    (self.tags, self.tag),
                )
            )
            numbers = float(self.start[row]), float(self.flops[row]), float(self.bytes[row])
            yield Span(float(self.stop[row]), lane, name, *numbers, tag)

    def tell(self, log: Log) -> None:
        """Put the columns beside the log and emit the event that names them."""
        table = np.stack([np.asarray(getattr(self, row), np.float64) for row in ROWS])
        log.blobs[NAME] = table
        last = float(self.stop[-1]) if len(self) else 0.0
        log.emit(Blob(last, NAME, NAME, list(table.shape)))

    @classmethod
    def told(cls, event: Blob, blobs: Mapping[str, np.ndarray], facts: dict[str, Any]) -> Self:
        """The spans that `event` names. Of a damaged log, those that can be understood."""
        given = facts.get(NAME)
        given = given if isinstance(given, dict) else {}
        words = [[str(w) for w in _listed(given.get(k))] for k in ("lanes", "names", "tags")]
        table = blobs.get(event.ref)
        if table is None or table.ndim != 2 or len(table) != len(ROWS) or table.dtype.kind != "f":
            table = np.empty((len(ROWS), 0))
        sound = np.isfinite(table).all(axis=0) & (table[1] >= table[0])
        for row, listed in zip((2, 3, 4), words, strict=True):
            sound &= (table[row] >= 0) & (table[row] < len(listed))
        if not sound.all():
            table = table[:, sound]
        start, stop, lane, name, tag, flops, size = table
        lane, name, tag = (column.astype(np.int32) for column in (lane, name, tag))
        lanes, names, tags = words
        return cls(start, stop, lane, name, tag, flops, size, lanes, names, tags)


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def union(start: np.ndarray, stop: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The disjoint intervals that spans cover together, in order."""
    order = np.argsort(start, kind="stable")
    start, reach = start[order], np.maximum.accumulate(stop[order])
    new = np.flatnonzero(np.append(True, start[1:] > reach[:-1])) if len(start) else np.array([])
    last = np.append(new[1:], len(start)).astype(np.intp) - 1
    return start[new.astype(np.intp)], reach[last] if len(new) else reach[:0]
