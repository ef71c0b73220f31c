"""Nsight Systems' SQLite export (`nsys export --type sqlite`) as entries of the Chrome format.

Read-only, a table at a time: kernels, copies and fills in their streams, the calls that launched
them, and NVTX ranges. Of several processes each stream and each launch is its own process's, and a
device is the one that the process calls by that number. Of CUDA graphs what
`--cuda-graph-trace=node` records: graphs traced as wholes are left out. Times of the export are
nanoseconds, of the format microseconds.
"""

import json
import os
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
PROCESSES, DEVICES = "PROCESSES", "TARGET_INFO_CUDA_DEVICE"
READ = {"StringIds", "TARGET_INFO_GPU", CALLS, RANGES, PROCESSES, DEVICES,
        *(table for _, table, _ in WORK)}  # fmt: skip
THREAD = 1 << 24  # a globalTid ends with the thread's number, before it stands the process's
APART = 1 << 32  # between the correlation ids of two processes, which are of 32 bits
SHOWN = 40  # characters of a program's name
MOST = 10_000  # processes, and devices of processes, that are told apart


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
        self.named: set[tuple[int | str, int | str]] = set()  # lanes named so far
        self.processes: dict[int, int] = {}  # that use a device, where several do: their order
        self.programs: dict[int, str] = {}  # what a process runs
        self.device: dict[tuple[int, int], int] = {}  # (process's number, its name for it) -> GPU

    def __iter__(self) -> Iterator[list[Entry]]:
        check(self.path.name, "bytes", self.path.stat().st_size, "unpacked_bytes")
        self._check_alone()
        uri = f"{self.path.absolute().as_uri()}?mode=ro&immutable=1"
        try:
            with closing(sqlite3.connect(uri, uri=True)) as base:
                base.execute("PRAGMA trusted_schema = OFF")
                base.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, LONGEST)
                base.set_progress_handler(self._step, EVERY)
                base.text_factory = lambda data: data.decode("utf-8", "replace")
                yield from self._entries(base)
        except (sqlite3.Error, UnicodeDecodeError) as fault:  # a fault's own words may be no text
            raise BadInput(f"{self.path.name}: cannot be read as SQLite ({fault})") from None

    def _check_alone(self) -> None:
        """Raises BadInput where changes lie beside the file: read without them it says what was."""
        for end in ("-wal", "-journal"):
            beside = self.path.with_name(self.path.name + end)
            if os.path.lexists(beside) and beside.lstat().st_size:
                raise BadInput(
                    f"{self.path.name}: changes that are not in it yet lie in {beside.name}; close "
                    "what writes it, or open and close it in sqlite3"
                )

    def _step(self) -> bool:
        """Whether to give up."""
        self.steps += EVERY
        return self.steps > STEPS

    def _entries(self, base: sqlite3.Connection) -> Iterator[list[Entry]]:
        tables = {
            name for (name,) in base.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
        }
        has: dict[str, set[str]] = {}
        for table in tables & READ:  # of a plain table nothing is computed as it is read
            columns = base.execute("SELECT name, hidden FROM pragma_table_xinfo(?)", (table,))
            has[table] = set()
            for name, hidden in columns:
                has[table].add(name)
                if hidden:
                    raise BadInput(
                        f"{self.path.name}: {table} has computed columns; give an export"
                    )
        if not tables & {table for _, table, _ in WORK}:
            raise BadInput(
                f"{self.path.name}: a SQLite file without CUDA work of Nsight Systems; export the "
                "report by `nsys export --type sqlite`"
            )
        if "StringIds" in tables:
            self._read_strings(base)
        if "TARGET_INFO_GPU" in tables:
            gpus = [{"name": str(name)} for (name,) in
                    base.execute("SELECT name FROM TARGET_INFO_GPU")]  # fmt: skip
            self.head = json.dumps(gpus).encode()
        self._read_processes(base, has)
        for kind, table, name in WORK:
            if table in tables:
                of = "globalPid" if "globalPid" in has[table] else "NULL"
                yield from self._rows(base, table, ("deviceId", "streamId", name, of), kind)
        if CALLS in tables:
            named = ("globalTid", "globalTid", "nameId", "globalTid")
            yield from self._rows(base, CALLS, named, "cuda_runtime")
        if RANGES in tables:
            yield from self._ranges(base)

    def _read_strings(self, base: sqlite3.Connection) -> None:
        """The texts that rows name by number, as long as they are not too much to hold."""
        held = 0
        for number, value in base.execute("SELECT id, value FROM StringIds"):
            self.strings[number] = text = str(value)
            held += len(text) + EACH
            check(self.path.name, "bytes of texts that rows name", held, "text_bytes")

    def _read_processes(self, base: sqlite3.Connection, has: dict[str, set[str]]) -> None:
        """Which processes use devices, what they are called, and which GPU is whose device."""
        said = set[int]()
        for _, table, _ in WORK:
            if "globalPid" in has.get(table, ()):
                found = base.execute(f"SELECT DISTINCT globalPid FROM {table} LIMIT {MOST}")
                said |= {value // THREAD for (value,) in found if isinstance(value, int)}
        if len(said) > 1:
            self.processes = {process: place for place, process in enumerate(sorted(said))}
        if {"globalPid", "name"} <= has.get(PROCESSES, set()):
            named = base.execute(f"SELECT globalPid, name FROM {PROCESSES} LIMIT {MOST}")
            self.programs = {
                value // THREAD: Path(str(name)).name[:SHOWN] for value, name in named
                if isinstance(value, int) and name
            }  # fmt: skip
        if self.processes and {"pid", "cudaId", "gpuId"} <= has.get(DEVICES, set()):
            rows = base.execute(f"SELECT pid, cudaId, gpuId FROM {DEVICES} LIMIT {MOST}")
            self.device = {
                (pid, own): gpu for pid, own, gpu in rows if _whole(pid, pid, own, gpu)
            }  # fmt: skip

    def _rows(
        self, base: sqlite3.Connection, table: str, columns: tuple[str, str, str, str], kind: str
    ) -> Iterator[list[Entry]]:
        """Rows with a start and an end; `columns`: device or process, stream or thread, name, and
        whose it is."""
        place, lane, name, of = columns
        cursor = base.execute(
            f"SELECT start, end, {place}, {lane}, {name or 'NULL'}, correlationId, {of} "
            f"FROM {table}"
        )
        for rows in iter(lambda: cursor.fetchmany(ROWS), []):
            kept = self._kept(self._row(kind, row) for row in rows)
            yield [*kept, *self._names(kept, is_host=kind == "cuda_runtime")]

    def _row(self, kind: str, row: tuple[Any, ...]) -> Entry | None:
        start, end, process, thread, name, correlation, of = row
        if not _whole(start, end, process, thread):
            return None
        if kind == "gpu_memcpy":
            called = f"Memcpy {COPIES.get(name, '')}".strip()
        else:
            called = "Memset" if kind == "gpu_memset" else self.strings.get(name, kind)
        on_host = kind == "cuda_runtime"
        owner = of // THREAD if isinstance(of, int) else -1
        number = correlation if isinstance(correlation, int) else -1
        if owner in self.processes and 0 <= number < APART:
            number += APART * self.processes[owner]
        if not on_host and owner in self.processes:
            process = self.device.get((owner % THREAD, process), process)
            thread = f"{thread}, {self._called(owner)}"
        return Entry(
            "X", called, kind,
            process // THREAD if on_host else process, thread % THREAD if on_host else thread,
            start * NANO, (end - start) * NANO, msgspec.Raw(b'{"correlation": %d}' % number),
        )  # fmt: skip

    def _called(self, process: int) -> str:
        """A process by its number and its program; the host's part of the number is not said."""
        program = self.programs.get(process)
        return f"process {process % THREAD}{f' ({program})' if program else ''}"

    def _names(self, entries: list[Entry], is_host: bool) -> Iterator[Entry]:
        """What the lanes of those are called, each once: streams of a device, or a process."""
        for place in dict.fromkeys((entry.pid, entry.tid) for entry in entries):
            if place in self.named:
                continue
            self.named.add(place)
            told = [("thread_name", "name", f"stream {place[1]}"),
                    ("process_labels", "labels", f"GPU {place[0]}")]  # fmt: skip
            if is_host:
                told = [("process_name", "name", self._called(int(place[0])))]
            for what, key, said in told:
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
            kept = self._kept(
                Entry("X", str(text or self.strings.get(number, "range")), "user_annotation",
                      thread // THREAD, thread % THREAD, start * NANO, (end - start) * NANO)
                if _whole(start, end, thread, 0) else None
                for start, end, thread, text, number in rows
            )  # fmt: skip
            yield [*kept, *self._names(kept, is_host=True)]

    def _kept(self, entries: Iterator[Entry | None]) -> list[Entry]:
        listed = list(entries)
        kept = [entry for entry in listed if entry is not None]
        self.left_out += len(listed) - len(kept)
        return kept


def _whole(*values: Any) -> bool:
    """Whether all are whole numbers, the second (an end) not before the first."""
    return all(isinstance(value, int) for value in values) and values[1] >= values[0]
