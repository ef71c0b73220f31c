"""Chrome traces read in: what PyTorch's profiler, vLLM and others write becomes columns of spans.

In comes a file of any size (packed with gzip or not, or Nsight Systems' SQLite export), in bounded
memory; out come its spans, its counters and moments, and what could not be read. Times of the
format are microseconds.
"""

import re
from array import array
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from engine.core.chrome.category import HOST, NO_STREAM, SYNC, category
from engine.core.chrome.lane_names import Called, device_names, lane_names
from engine.core.chrome.launches import Launches
from engine.core.chrome.nsight import NsightEntries, is_nsight
from engine.core.chrome.pieces import Entry, Pieces
from engine.core.chrome.work import NOTHING, Counted, Work, give_to_kernels
from engine.core.limits import limits
from engine.core.spans import Spans

LARGEST = float(np.finfo(np.float64).max)  # of JSON's numbers there are larger ones
LATEST = 1e20  # microseconds: what lies further off has no time; three million years
MOST_OTHERS = 50_000  # counter values and moments kept
MOST_KEYS = 100  # series of one counter value
MOST_DEVICES = 1024  # that a head names
MOST_NAMES = 60_000  # distinct names kept apart
MICRO = 1e-6
NAMED = ("thread_name", "process_name", "process_labels")  # the metadata that is shown
UNREAD = {  # kinds of entries that are no work of one lane
    **dict.fromkeys("bneSTpF", "asynchronous"), **dict.fromkeys("stf", "of flow arrows"),
    **dict.fromkeys("NOD", "of objects"), **dict.fromkeys("vV", "of memory"), "P": "samples",
    **dict.fromkeys("c(),=", "of clocks, contexts and links"),
}  # fmt: skip
OTHERS = ("", "others")  # the lane of all beyond the limit
WINDOW = "Trace"  # a profiler's note of how long it watched: work of nobody
DEVICE = re.compile(rb'"name"\s*:\s*"([^"\\]{1,80})"')
RANK = re.compile(rb'"distributedInfo"\s*:\s*\{[^{}]{0,400}?"rank"\s*:\s*(\d{1,6})\b')

Say = Callable[[str], None]


@dataclass(slots=True)
class Trace:
    """`levels`: (time, lane, name, value); `marks`: (time, lane, name), in order of time.

    `devices` are the accelerators the head names. `categories`: of each of the spans' names (see
    `category`); `device_of`: of each of their lanes the device's name, "" for one of the host.
    `notes` say what was left out, a sentence each. `launched_by`: of each span the row of the call
    that started it, -1 where none is known. `rank` of the job, -1 where the trace does not say;
    `zero`: the format's own time, in microseconds, at which this one's begins.
    """

    spans: Spans
    levels: list[tuple[float, str, str, float]]
    marks: list[tuple[float, str, str]]
    devices: list[str]
    categories: list[str] = field(default_factory=list)
    device_of: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    launched_by: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int32))
    rank: int = -1
    zero: float = 0.0


def read_chrome(path: str | Path, work: Work = NOTHING) -> Trace:
    """Read the trace at `path`; `work` counts the flops and bytes of the operations it knows.

    Raises BadInput for a file that is neither a Chrome trace nor an export of Nsight Systems.
    """
    path = Path(path)
    pieces = NsightEntries(path) if is_nsight(path) else Pieces(path)
    reader = _Reader(work)
    for entries in pieces:
        reader.take(entries)
        if len(reader.start) >= limits().entries:
            reader.notes.append(f"only the first {len(reader.start):,} spans were read")
            break
    if pieces.left_out:
        reader.notes.append(f"{pieces.left_out:,} entries could not be read")
    if pieces.cut:
        reader.notes.append("the file ends in the middle of an entry")
    named = islice(DEVICE.finditer(pieces.head), MOST_DEVICES)
    trace = reader.trace([found[1].decode("utf-8", "replace") for found in named])
    said = RANK.search(pieces.head)
    trace.rank = int(said.group(1)) if said else -1
    return trace


class _Numbers(dict[Any, int]):
    """Numbers things in order of appearance."""

    def of(self, values: list[Any]) -> np.ndarray:
        for value in dict.fromkeys(values):
            if value not in self:
                self[value] = len(self)
        return np.fromiter(map(self.__getitem__, values), np.int32, len(values))


class _Reader:
    """Columns while they are read: times in microseconds since the format's own zero."""

    def __init__(self, work: Work) -> None:
        self.start, self.took = array("d"), array("d")
        self.lane, self.name, self.tag = array("i"), array("i"), array("i")
        self.lanes, self.names, self.tags = _Numbers(), _Numbers(), _Numbers({"": 0})
        self.counted, self.launches = Counted(work), Launches()
        self.halves: dict[int, list[tuple[float, int]]] = {}  # begun and not ended, by lane
        self.lost = 0  # ends without a beginning
        self.timeless = 0  # entries whose time or length is missing, below zero or out of reach
        self.levels: list[tuple[float, int, str, float]] = []
        self.marks: list[tuple[float, int, str]] = []
        self.called: Called = {}  # what metadata says of a lane
        self.categories: dict[int, str] = {}  # of names, where a device worked under them
        self.on_device: set[int] = set()  # lanes in which a device worked
        self.unread = Counter[str]()  # entries of other kinds
        self.merged = False  # whether lanes beyond the limit became one
        self.notes: list[str] = []

    def take(self, entries: list[Entry]) -> None:
        """The next entries of the file."""
        spans = [e for e in entries if e.ph == "X" and e.cat != WINDOW]
        whole = [e for e in spans if e.dur >= 0 and abs(e.ts) + e.dur <= LATEST]
        self.timeless += len(spans) - len(whole)
        first = len(self.start)
        self.start.frombytes(np.array([e.ts for e in whole]).tobytes())
        self.took.frombytes(np.array([e.dur for e in whole]).tobytes())
        lanes, names = self._lanes_of(whole), self._names_of(whole)
        self.lane.frombytes(lanes.tobytes())
        self.name.frombytes(names.tobytes())
        self._on_device(whole, lanes, names, first)
        tags = [""] * len(whole)
        self.counted.count(whole, first, tags)
        for row, entry in enumerate(whole):
            if entry.cat == SYNC and _dict(entry).get("stream") == -1:
                tags[row] = NO_STREAM
        self.tag.frombytes(self.tags.of(tags).tobytes())
        for entry in entries:
            if entry.ph != "X":
                self._other(entry)

    def _on_device(
        self, entries: list[Entry], lanes: np.ndarray, names: np.ndarray, first: int
    ) -> None:
        """Note which names and lanes are those of a device's work, and what started it."""
        kinds = frozenset(k for k in {e.cat for e in entries} if category(k, "") != HOST)
        self.launches.note(entries, first, kinds | {SYNC})
        rows = [row for row, entry in enumerate(entries) if entry.cat in kinds] if kinds else []
        self.on_device.update(lanes[rows].tolist())
        for name, row in zip(names[rows].tolist(), rows, strict=True):
            if name not in self.categories:
                self.categories[name] = category(entries[row].cat, entries[row].name)

    def _lanes_of(self, entries: list[Entry]) -> np.ndarray:
        places: list[tuple[int | str, int | str]] = [(e.pid, e.tid) for e in entries]
        most = limits().lanes
        if len(self.lanes) + len(places) > most:
            new = dict.fromkeys(place for place in places if place not in self.lanes)
            kept = set(list(new)[: max(0, most - len(self.lanes))])
            self.merged |= len(kept) < len(new)
            places = [p if p in self.lanes or p in kept else OTHERS for p in places]
        return self.lanes.of(places)

    def _names_of(self, entries: list[Entry]) -> np.ndarray:
        names = [e.name for e in entries]
        if len(self.names) > MOST_NAMES:
            names = [name if name in self.names else "other" for name in names]
        return self.names.of(names)

    def _other(self, entry: Entry) -> None:
        ph = entry.ph
        if ph == "M":
            if entry.name in NAMED and len(self.called) < 4 * limits().lanes:
                self.called[entry.name, entry.pid, entry.tid] = _dict(entry)
        elif ph not in ("B", "E", "C", "i", "I", "R"):
            self.unread[UNREAD.get(ph, "of no known kind")] += 1
        elif not abs(entry.ts) <= LATEST:
            self.timeless += 1
        elif ph in ("B", "E"):
            self._half(entry)
        elif len(self.levels) + len(self.marks) < MOST_OTHERS:
            lane = int(self._lanes_of([entry])[0])
            if ph == "C":
                before = len(self.levels)
                for key, value in islice(_dict(entry).items(), MOST_KEYS):
                    if isinstance(value, int | float) and abs(value) <= LARGEST:
                        name = entry.name if key in ("value", entry.name) else f"{entry.name} {key}"
                        self.levels.append((entry.ts, lane, name, float(value)))
                self.unread["counters without a number"] += len(self.levels) == before
            else:
                self.marks.append((entry.ts, lane, entry.name))

    def _half(self, entry: Entry) -> None:
        """A beginning or an end: the last begun in a lane ends first."""
        lane = int(self._lanes_of([entry])[0])
        begun = self.halves.setdefault(lane, [])
        if entry.ph == "B":
            begun.append((entry.ts, int(self._names_of([entry])[0])))
        elif begun and entry.ts < begun[-1][0]:
            begun.pop()
            self.timeless += 1
        elif begun:
            start, name = begun.pop()
            self.start.append(start)
            self.took.append(entry.ts - start)
            self.lane.append(lane)
            self.name.append(name)
            self.tag.append(0)
        else:
            self.lost += 1

    def trace(self, devices: list[str]) -> Trace:
        """Everything read, in seconds from the first moment on."""
        start, took = np.frombuffer(self.start), np.frombuffer(self.took)
        others = [row[0] for row in self.levels] + [row[0] for row in self.marks]
        zero = min([float(start.min(initial=np.inf)), *others])
        zero = zero if np.isfinite(zero) else 0.0
        begin = (start - zero) * MICRO
        stop = begin + took * MICRO
        flops, size = np.zeros(len(start)), np.zeros(len(start))
        give_to_kernels(self.counted, took, flops, size)
        order = np.argsort(stop, kind="stable")
        tag = np.frombuffer(self.tag, np.int32).copy()
        self.counted.tell(self.tags, tag)
        lane, name = (np.frombuffer(column, np.int32)[order] for column in (self.lane, self.name))
        lanes = lane_names(self.lanes, self.called)
        open_ones = self.lost + sum(map(len, self.halves.values()))
        if open_ones:
            self.notes.append(f"{open_ones:,} spans have a beginning or an end only")
        if self.timeless:
            self.notes.append(f"{self.timeless:,} entries have no time or length that can be kept")
        if self.unread.total():
            each = ", ".join(f"{n:,} {kind}" for kind, n in sorted(self.unread.items()) if n)
            self.notes.append(f"{self.unread.total():,} entries are of kinds not drawn ({each})")
        if self.merged:
            self.notes.append(f"of over {limits().lanes:,} threads the later ones are one lane")
        if len(self.levels) + len(self.marks) >= MOST_OTHERS:
            self.notes.append(f"only {MOST_OTHERS:,} counter values and moments were kept")
        return Trace(
            Spans(
                begin[order],
                stop[order],
                lane,
                name,
                tag[order],
                flops[order],
                size[order],
                lanes,
                list(self.names),
                list(self.tags),
            ),
            sorted(((t - zero) * MICRO, lanes[i], n, v) for t, i, n, v in self.levels),
            sorted(((t - zero) * MICRO, lanes[i], n) for t, i, n in self.marks),
            devices,
            [self.categories.get(place, HOST) for place in range(len(self.names))],
            device_names(self.lanes, self.on_device, self.called),
            self.notes,
            self.launches.by_row(len(start), order),
            zero=zero,
        )


def _dict(entry: Entry) -> dict[str, Any]:
    """An entry's arguments; none where they are no object."""
    try:
        found = msgspec.json.decode(entry.args) if entry.args else {}
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}
