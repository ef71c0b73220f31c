"""Damaged run files: a sound one with its header, columns and arrays changed one at a time."""

import io
import json
import random
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from engine.core.events import Branch, Closed, Level, Mark, Opened, Span
from engine.core.file import save
from engine.core.log import Log
from tests.malformed.any_file import BIG, DEEP, Case, damaged, plain
from tests.malformed.damage import nested


def run_log():
    log = Log()
    log.blobs["x"] = np.arange(6.0).reshape(2, 3)
    log.emit(Opened(0.0, {"knob": 1}, study="toy", facts={"lanes": ["a"]}))
    log.emit(Span(0.5, "a", "matmul", 0.1, flops=3.0, bytes=4.0, tag="phase=decode"))
    log.emit(Level(0.6, "a", "pages", 3.0))
    log.emit(Branch(0.7, "", "r1", "running", why="arrived"))
    log.emit(Mark(0.8, "a", "note", "<b>text</b>"))
    log.emit(Closed(1.0, "finished"))
    return log


def runs(count: int, folder: Path, draw: random.Random) -> Iterator[Case]:
    path = save(run_log(), folder / "sound.run")
    sound, table = path.read_bytes(), pq.read_table(path)
    yield "sound/a.run", sound
    yield from plain("a.run")
    head = b"parallel-workbench"
    for name, said in {
        "other version": {"version": 2, "events": 6},
        "version as text": {"version": "1", "events": 6},
        "no version": {},
        "more events": {"version": 1, "events": 7},
        "events as text": {"version": 1, "events": "six"},
        "a list": [1],
        "a number": 1,
    }.items():
        yield f"{name}/a.run", _parquet(table, {head: json.dumps(said).encode()})
    for name, raw in {"no JSON": b"{", "not UTF-8": b"\xff", "deep": nested(DEEP).encode()}.items():
        yield f"header {name}/a.run", _parquet(table, {head: raw})
    yield "no marker/a.run", _parquet(table, {})
    meta = dict(table.schema.metadata or {})
    for column in table.column_names:
        yield f"without {column}/a.run", _parquet(table.drop_columns([column]), meta)
        place = table.column_names.index(column)
        for kind, value in {
            "text": "x",
            "number": 7,
            "none": None,
            "list": [1],
            "far": 1e308,
        }.items():
            values = pa.array([value] * table.num_rows)
            changed = table.set_column(place, column, values)
            yield f"{column} is {kind}/a.run", _parquet(changed, meta)
    yield "no rows/a.run", _parquet(table.slice(0, 0), meta)
    yield "half the rows/a.run", _parquet(table.slice(0, 3), meta)
    arrays = table["event"].to_pylist().index("array")
    for name, text, shape in (
        ("objects", "|O", [6]), ("no dtype", "zz", [6]), ("far shape", "<f8", [BIG - 1]),
        ("negative shape", "<f8", [-1, -1]), ("huge dtype", "|V2147483647", [1]),
        ("wrong shape", "<f8", [7]), ("text dtype", "<U9999999", [1]), ("pickled", "O8", [1]),
        ("fields", "f8,f8", [3]), ("zero wide", "|V0", [1]), ("many axes", "<f8", [1] * 70 + [6]),
    ):  # fmt: skip
        changed = _with(_with(table, "text", arrays, text), "shape", arrays, shape)
        yield f"array {name}/a.run", _parquet(changed, meta)
    yield from _levels(sound)
    yield from damaged("a.run", sound, count, draw)


def _levels(sound: bytes) -> Iterator[Case]:
    """Footers whose fields are no longer optional, or whose levels are counted one short: what
    pyarrow tells of their columns ends the process."""
    optional = b"\x25\x02\x18"  # a field's repetition, and its name after it
    for what, old, new in (
        ("required", optional, b"\x25\x00\x18"),
        ("repeated", optional, b"\x25\x04\x18"),
        ("of no kind", optional, b"\x25\x12\x18"),
        ("miscounted", b"\x19\x26", b"\x19\x16"),  # a list of two
    ):
        parts = sound.split(old)
        for place in range(1, len(parts)):
            made = old.join(parts[:place]) + new + old.join(parts[place:])
            yield f"field {place} {what}/a.run", made


def _with(table: pa.Table, column: str, row: int, value: object) -> pa.Table:
    values = table[column].to_pylist()
    values[row] = value
    place = table.column_names.index(column)
    return table.set_column(place, column, pa.array(values))


def _parquet(table: pa.Table, meta: dict[bytes, bytes]) -> bytes:
    out = io.BytesIO()
    pq.write_table(table.replace_schema_metadata(meta), out)
    return out.getvalue()
