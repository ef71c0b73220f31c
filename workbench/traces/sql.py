"""SQL over a run: its events, or another tool's trace, as tables of SQLite in memory that one
reading statement is asked of.

Nothing is written, attached or loaded: only SELECT is let through, a statement has seconds and
bytes it may take, and its answer a number of rows.
"""

import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from itertools import islice
from typing import Any

from engine.core.chrome.device_trace import DeviceTrace
from engine.core.errors import BadInput
from engine.core.events import AnyEvent, Blob, Branch, Level, Mark, Move, Page, Span, Token
from engine.core.log import Log
from engine.core.spans import NAME, Spans

MOST_EVENTS = 3_000_000  # rows of all tables together
MOST_ROWS = 10_000  # of an answer
SECONDS = 30.0  # of a processor that a statement may take
BYTES = 2 << 30  # that SQLite may hold, tables and all
LONGEST = 1 << 18  # bytes of one value that a statement makes; what a call takes goes by its square
WIDEST = 100  # columns
HELD = 1 << 28  # bytes of an answer's texts
PATTERN = 1000  # bytes of what LIKE and GLOB look for
EVERY = 100_000  # steps of SQLite's machine between looks at the clock
TABLES = {
    "spans": ("start", "stop", "seconds", "lane", "name", "tag", "flops", "bytes", "category"),
    "levels": ("time", "lane", "name", "value"),
    "marks": ("time", "lane", "name", "text"),
    "tokens": ("time", "thread", "text", "logprob", "accepted", "branch"),
    "branches": ("time", "thread", "parent", "state", "why"),
    "pages": ("time", "page", "owner", "state", "start", "tokens", "kind", "why"),
    "moves": ("start", "stop", "seconds", "source", "target", "bytes", "tag"),
}
OF = {Level: "levels", Mark: "marks", Token: "tokens", Branch: "branches", Page: "pages"}
LOADS = {"load_extension", "fts3_tokenizer"}
SLOW = {"printf", "format", "trim", "ltrim", "rtrim", "json_patch"}  # the clock cannot end one call
ALLOWED = {sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_RECURSIVE}


@dataclass(frozen=True)
class Answer:
    """`rows` under `columns`; `is_cut`: there were more than `MOST_ROWS`."""

    columns: tuple[str, ...]
    rows: list[tuple[Any, ...]]
    is_cut: bool = False


def asked(log: Log, query: str, seconds: float = SECONDS) -> Answer:
    """What one SELECT over the tables of `log` (`TABLES`; times in seconds) gives.

    Raises BadInput for anything else, and for what takes too long or is too much to hold.
    """
    spans = _columns(log)
    count = len(log) + (0 if spans is None else len(spans))
    if count > MOST_EVENTS:
        raise BadInput(f"sql: {count:,} events; at most {MOST_EVENTS:,} are held as tables")
    with closing(sqlite3.connect(":memory:")) as base:
        base.execute(f"PRAGMA hard_heap_limit = {BYTES}")
        base.execute("PRAGMA trusted_schema = OFF")
        base.execute("PRAGMA temp_store = MEMORY")  # what it sorts would else go to the disk
        try:
            _fill(base, log, spans)
            return _answer(base, query, seconds)
        except (sqlite3.Error, sqlite3.Warning, ValueError, OverflowError, MemoryError) as fault:
            raise BadInput(f"sql: {_why(fault)}") from None


def _columns(log: Log) -> Spans | None:
    """The spans that lie beside the log, where there are such."""
    blob = next((event for event in log.of(Blob) if event.name == NAME), None)
    if blob is None or log.opened is None:
        return None
    return Spans.told(blob, log.blobs, log.opened.facts)


def _fill(base: sqlite3.Connection, log: Log, spans: Spans | None) -> None:
    for table, columns in TABLES.items():
        base.execute(f"CREATE TABLE {table} ({', '.join(columns)})")
    into = {
        table: f"INSERT INTO {table} VALUES ({', '.join('?' * len(columns))})"
        for table, columns in TABLES.items()
    }
    for event in log:
        table, row = _row(event)
        if table:
            base.execute(into[table], row)
    if spans is not None:
        base.executemany(into["spans"], _rows(log, spans))


def _row(event: AnyEvent) -> tuple[str, tuple[Any, ...]]:
    """The table an event belongs to ("" for none), and its row there."""
    kind = type(event)
    if isinstance(event, Span):
        ends = (event.start, event.time, event.time - event.start)
        texts = (_text(event.lane), _text(event.name), _text(event.tag))
        return "spans", (*ends, *texts, event.flops, event.bytes, "")
    if isinstance(event, Move):
        ends = (event.start, event.time, event.time - event.start)
        return "moves", (*ends, _text(event.source), _text(event.target), event.bytes,
                         _text(event.tag))  # fmt: skip
    if kind not in OF:
        return "", ()
    values = (getattr(event, column) for column in TABLES[OF[kind]])
    return OF[kind], tuple(_text(v) if isinstance(v, str) else v for v in values)


def _rows(log: Log, spans: Spans) -> Iterator[tuple[Any, ...]]:
    trace = DeviceTrace.of_log(log)
    kinds = trace.categories if trace is not None else [""] * len(spans.names)
    lanes, names, tags, kinds = (
        [_text(word) for word in words] for words in (spans.lanes, spans.names, spans.tags, kinds)
    )
    for start, stop, lane, name, tag, flops, size in zip(
        spans.start.tolist(), spans.stop.tolist(), spans.lane.tolist(), spans.name.tolist(),
        spans.tag.tolist(), spans.flops.tolist(), spans.bytes.tolist(), strict=True,
    ):  # fmt: skip
        yield (
            start, stop, stop - start, lanes[lane], names[name], tags[tag], flops, size, kinds[name]
        )  # fmt: skip


def _text(word: str) -> str:
    """As text that SQLite takes: half of a character pair becomes a question mark."""
    return word.encode("utf-8", "replace").decode()


def _answer(base: sqlite3.Connection, query: str, seconds: float) -> Answer:
    until = time.thread_time() + seconds  # of a processor: others may keep it from us
    base.commit()
    base.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, LONGEST)
    base.setlimit(sqlite3.SQLITE_LIMIT_COLUMN, WIDEST)
    base.setlimit(sqlite3.SQLITE_LIMIT_LIKE_PATTERN_LENGTH, PATTERN)
    base.set_authorizer(_allows)
    base.set_progress_handler(lambda: time.thread_time() > until, EVERY)
    found = base.execute(query)
    rows, held = [], 0
    for row in islice(found, MOST_ROWS + 1):
        held += sum(len(value) for value in row if isinstance(value, str | bytes))
        if held > HELD:
            raise ValueError(f"the answer's texts are over {HELD >> 20} MiB; ask for less")
        rows.append(row)
    columns = tuple(str(column[0]) for column in found.description or ())
    if not columns:
        raise ValueError("give a SELECT")
    return Answer(columns, rows[:MOST_ROWS], len(rows) > MOST_ROWS)


def _allows(action: int, first: str | None, second: str | None, *_: Any) -> int:
    """Reading alone; of functions none that loads code or may take minutes in one call."""
    if action == sqlite3.SQLITE_FUNCTION:
        is_bad = second in LOADS or second in SLOW
        return sqlite3.SQLITE_DENY if is_bad else sqlite3.SQLITE_OK
    return sqlite3.SQLITE_OK if action in ALLOWED else sqlite3.SQLITE_DENY


def _why(fault: BaseException) -> str:
    """A fault in one line, and what there is where a name is wrong or more than reading asked."""
    said = " ".join(str(fault).split())[:200] or type(fault).__name__
    if said == "interrupted":
        return f"took over {SECONDS:g} s of a processor, or was stopped; ask for less"
    if said in ("not authorized", "authorization denied"):
        return "only reading is allowed; give one SELECT"
    if "no such" in said or "syntax" in said:
        tables = "; ".join(f"{name}({', '.join(columns)})" for name, columns in TABLES.items())
        return f"{said}; there are {tables}"
    return said
