"""Nsight Systems' SQLite export (`nsys export --type sqlite`) as entries of the Chrome format.

Read-only, a table at a time: kernels, copies and fills in their streams, the calls that launched
them, and NVTX ranges, of one process. Of CUDA graphs what `--cuda-graph-trace=node` records: graphs
traced as wholes are left out. Times of the export are nanoseconds, of the format microseconds.
"""

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec

from engine.core.chrome.pieces import Entry
from engine.core.errors import BadInput
from engine.core.limits import check, open_regular

MAGIC = b"SQLite format 3\0"
ROWS = 10_000  # fetched at a time
STEPS = 2_000_000_000  # of SQLite's machine that one file may take
EVERY = 1_000_000
LONGEST = 1 << 20  # bytes of one text, whatever makes it
EACH = 100  # bytes that holding a text takes beside its own, or so
NANO = 1e-3  # microseconds
PUSH_POP, START_END = 59, 60  # event types of NVTX ranges
COPIES = {1: "HtoD", 2: "DtoH", 8: "DtoD", 10: "PtoP"}
GPU = "CUPTI_ACTIVITY_KIND_"
# Kind of the format, table, and the column that names a row (of StringIds).
WORK = (("kernel", f"{GPU}KERNEL", "shortName"), ("gpu_memcpy", f"{GPU}MEMCPY", "copyKind"),
        ("gpu_memset", f"{GPU}MEMSET", ""))  # fmt: skip
CALLS = f"{GPU}RUNTIME"
RANGES = "NVTX_EVENTS"
READ = {"StringIds", "TARGET_INFO_GPU", CALLS, RANGES, *(table for _, table, _ in WORK)}
THREAD = 1 << 24  # a globalTid ends with the thread's number, before it stands the process's


def is_nsight(path: Path) -> bool:
    """Whether the file is a SQLite database; one that cannot be opened is none."""
    try:
        with open_regular(path) as file:
            return file.read(len(MAGIC)) == MAGIC
    except OSError:
        return False


class NsightEntries:
    """Iterates over lists of entries, as `Pieces` does. `head` names the devices.

    Raises BadInput where the database is no export of Nsight Systems, or damaged.
    """

    def __init__(self, path: Path) -> None:
        self.path, self.left_out, self.cut, self.head = path, 0, False, b""
        self.steps = 0
        self.strings: dict[int, str] = {}
        self.streams: set[tuple[int | str, int | str]] = set()  # named so far

    def __iter__(self) -> Iterator[list[Entry]]:
        check(self.path.name, "bytes", self.path.stat().st_size, "unpacked_bytes")
        uri = f"{self.path.absolute().as_uri()}?mode=ro&immutable=1"
        try:
            with closing(sqlite3.connect(uri, uri=True)) as base:
                base.execute("PRAGMA trusted_schema = OFF")
                base.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, LONGEST)
                base.set_progress_handler(self._step, EVERY)
                base.text_factory = lambda data: data.decode("utf-8", "replace")
                yield from self._entries(base)
        except sqlite3.Error as fault:
            raise BadInput(f"{self.path.name}: cannot be read as SQLite ({fault})") from None

    def _step(self) -> bool:
        """Whether to give up."""
        self.steps += EVERY
        return self.steps > STEPS

    def _entries(self, base: sqlite3.Connection) -> Iterator[list[Entry]]:
        tables = {
            name for (name,) in base.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
        }
        for table in tables & READ:  # of a plain table nothing is computed as it is read
            columns = base.execute("SELECT hidden FROM pragma_table_xinfo(?)", (table,))
            if any(hidden for (hidden,) in columns):
                raise BadInput(f"{self.path.name}: {table} has computed columns; give an export")
        if not tables & {table for _, table, _ in WORK}:
            raise BadInput(
                f"{self.path.name}: a SQLite file without CUDA work of Nsight Systems; export the "
                "report by `nsys export --type sqlite`"
            )
        if "StringIds" in tables:
            self._read_strings(base)
        if "TARGET_INFO_GPU" in tables:
            named = [{"name": str(name)} for (name,) in
                     base.execute("SELECT name FROM TARGET_INFO_GPU")]  # fmt: skip
            self.head = json.dumps(named).encode()
        for kind, table, name in WORK:
            if table in tables:
                yield from self._rows(base, table, ("deviceId", "streamId", name), kind)
        if CALLS in tables:
            yield from self._rows(base, CALLS, ("globalTid", "globalTid", "nameId"), "cuda_runtime")
        if RANGES in tables:
            yield from self._ranges(base)

    def _read_strings(self, base: sqlite3.Connection) -> None:
        """The texts that rows name by number, as long as they are not too much to hold."""
        held = 0
        for number, value in base.execute("SELECT id, value FROM StringIds"):
            self.strings[number] = text = str(value)
            held += len(text) + EACH
            check(self.path.name, "bytes of texts that rows name", held, "text_bytes")

    def _rows(
        self, base: sqlite3.Connection, table: str, columns: tuple[str, str, str], kind: str
    ) -> Iterator[list[Entry]]:
        """Rows with a start and an end; `columns`: process, thread and name."""
        process, thread, name = columns
        cursor = base.execute(
            f"SELECT start, end, {process}, {thread}, {name or 'NULL'}, correlationId FROM {table}"
        )
        for rows in iter(lambda: cursor.fetchmany(ROWS), []):
            kept = self._kept(self._row(kind, row) for row in rows)
            yield [*kept, *(self._names(kept) if kind != "cuda_runtime" else ())]

    def _row(self, kind: str, row: tuple[Any, ...]) -> Entry | None:
        start, end, process, thread, name, correlation = row
        if not _whole(start, end, process, thread):
            return None
        if kind == "gpu_memcpy":
            called = f"Memcpy {COPIES.get(name, '')}".strip()
        else:
            called = "Memset" if kind == "gpu_memset" else self.strings.get(name, kind)
        on_host = kind == "cuda_runtime"
        number = correlation if isinstance(correlation, int) else -1
        return Entry(
            "X", called, kind,
            process // THREAD if on_host else process, thread % THREAD if on_host else thread,
            start * NANO, (end - start) * NANO, msgspec.Raw(b'{"correlation": %d}' % number),
        )  # fmt: skip

    def _names(self, entries: list[Entry]) -> Iterator[Entry]:
        """What the streams of those are called, each once."""
        for place in dict.fromkeys((entry.pid, entry.tid) for entry in entries):
            if place not in self.streams:
                self.streams.add(place)
                for what, key, said in (
                    ("thread_name", "name", f"stream {place[1]}"),
                    ("process_labels", "labels", f"GPU {place[0]}"),
                ):
                    yield Entry(
                        "M", what, "", *place, args=msgspec.Raw(msgspec.json.encode({key: said}))
                    )

    def _ranges(self, base: sqlite3.Connection) -> Iterator[list[Entry]]:
        """NVTX ranges with both ends."""
        cursor = base.execute(
            f"SELECT start, end, globalTid, text, textId FROM {RANGES} "
            f"WHERE end IS NOT NULL AND eventType IN ({PUSH_POP}, {START_END})"
        )
        for rows in iter(lambda: cursor.fetchmany(ROWS), []):
            yield self._kept(
                Entry("X", str(text or self.strings.get(number, "range")), "user_annotation",
                      thread // THREAD, thread % THREAD, start * NANO, (end - start) * NANO)
                if _whole(start, end, thread, 0) else None
                for start, end, thread, text, number in rows
            )  # fmt: skip

    def _kept(self, entries: Iterator[Entry | None]) -> list[Entry]:
        listed = list(entries)
        kept = [entry for entry in listed if entry is not None]
        self.left_out += len(listed) - len(kept)
        return kept


def _whole(*values: Any) -> bool:
    """Whether all are whole numbers, the second (an end) not before the first."""
    return all(isinstance(value, int) for value in values) and values[1] >= values[0]
