"""Run files (`*.run`): a log as one Parquet table, one row an event, readable without this project.

Columns are the events' fields; a field whose type differs between kinds is stored as kind_field.
Arrays that `Blob` events refer to follow as rows of the kind "array". Reading a file back gives an
equal log, event for event; anything else gives one BadInput.
"""

import io
import json
import os
import typing
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from engine.core.errors import BadInput
from engine.core.events import KINDS, Event, Opened
from engine.core.limits import check_unpacked, open_regular, refuse_packed
from engine.core.log import Log
from engine.core.parquet_price import check_price
from engine.core.writing import written

MARKER = b"parallel-workbench"
VERSION = 1
ARRAY = "array"  # the kind of a row that holds a blob's data
PLACES = 2**31 - 1
LEAST = {"page": 0, "start": 0, "tokens": 0, "branch": 0, "parent": -1}
MOMENTS = 1e15  # seconds
WRITTEN: dict[str, Any] = {"compression": "zstd", "write_page_checksum": True}
PLAIN = "biufSU"  # kinds of an array: no objects, records, days or complex numbers


def _arrow(annotation: Any) -> pa.DataType:
    if annotation is float:
        return pa.float64()
    if annotation is int:
        return pa.int64()
    if annotation is bool:
        return pa.bool_()
    if typing.get_origin(annotation) is list:
        return pa.list_(pa.int64())
    return pa.dictionary(pa.int32(), pa.string())  # str, Literal, and dict as JSON


def _tag(kind: type[Event]) -> str:
    return str(kind.__struct_config__.tag)


def _columns() -> tuple[dict[type[Event], dict[str, str]], dict[str, pa.DataType]]:
    """For each kind, field -> column; and the type of every column."""
    types: dict[str, pa.DataType] = {}
    where: dict[type[Event], dict[str, str]] = {}
    for kind in KINDS:
        hints = typing.get_type_hints(kind)
        where[kind] = {}
        for field in kind.__struct_fields__:
            arrow = _arrow(hints[field])
            column = field if types.setdefault(field, arrow) == arrow else f"{_tag(kind)}_{field}"
            types[column] = arrow
            where[kind][field] = column
    return where, types


def save(log: Log, path: str | Path) -> Path:
    """Write `log` to `path` in one piece: a reader never sees half a file."""
    path, table = Path(path), _written(log)
    with written(path, "the run", (pa.ArrowException,)) as part, part.open("wb") as file:
        pq.write_table(table, file, **WRITTEN)  # by itself it takes names in UTF-8 alone
    return path


def packed(log: Log) -> bytes:
    """What `save` writes."""
    stream = io.BytesIO()
    pq.write_table(_written(log), stream, **WRITTEN)
    return stream.getvalue()


def _written(log: Log) -> pa.Table:
    where, types = _columns()
    parts = [_table(kind, log, where[kind], types) for kind in KINDS]
    parts += [_array_row(log, ref, place) for place, ref in enumerate(log.blobs)]
    table = pa.concat_tables([p for p in parts if p.num_rows], promote_options="default")
    table = table.sort_by("row").drop_columns("row")
    head = {MARKER: json.dumps({"version": VERSION, "events": len(log)}).encode()}
    return table.replace_schema_metadata(head)


def _table(kind: type[Event], log: Log, fields: dict[str, str], types: dict[str, Any]) -> pa.Table:
    rows = [row for row, event in enumerate(log.events) if type(event) is kind]
    events = [log.events[row] for row in rows]
    columns: dict[str, Any] = {"row": pa.array(rows, pa.int64())}
    columns["event"] = pa.array([_tag(kind)] * len(rows)).dictionary_encode()
    for field, column in fields.items():
        values = [getattr(event, field) for event in events]
        if values and isinstance(values[0], dict):
            values = [json.dumps(value) for value in values]
        columns[column] = pa.array(values, types[column])
    return pa.table(columns)


def _array_row(log: Log, ref: str, place: int) -> pa.Table:
    array = np.ascontiguousarray(log.blobs[ref])
    text = pa.dictionary(pa.int32(), pa.string())
    return pa.table(
        {
            "row": pa.array([len(log) + place], pa.int64()),
            "event": pa.array([ARRAY]).dictionary_encode(),
            "ref": pa.array([ref], text),
            "text": pa.array([array.dtype.str], text),
            "shape": pa.array([list(array.shape)], pa.list_(pa.int64())),
            "data": pa.array([array.tobytes()], pa.binary()),
        }
    )


def load(path: str | Path) -> Log:
    """Read a run file. Raises BadInput with one line for a file that is not a whole run."""
    path = Path(path)
    try:
        with open_regular(path) as stream:
            refuse_packed(stream.read(8), path)
            table = _table_of(stream, path)
        head = json.loads((table.schema.metadata or {})[MARKER])
    except BadInput:
        raise
    except FileNotFoundError:
        raise BadInput(f"{path}: no such file; give a run saved with --save") from None
    except KeyError:
        raise BadInput(
            f"{path}: a Parquet file, but not a run; give one saved with --save"
        ) from None
    except (pa.ArrowException, OSError, ValueError, RecursionError) as fault:
        raise BadInput(f"{path}: not a whole run file ({_first_line(fault)})") from None
    if not isinstance(head, dict) or head.get("version") != VERSION:
        raise BadInput(
            f"{path}: made by another version of the run format; save it again with that"
        )
    try:
        log = Log(list(_events(table)))
        log.blobs.update(_arrays(table))
    except (KeyError, TypeError, ValueError, RecursionError, pa.ArrowException) as fault:
        raise BadInput(f"{path}: a damaged run file ({_first_line(fault)})") from None
    if len(log) != head.get("events"):
        raise BadInput(f"{path}: a damaged run file ({len(log)} of {head.get('events')} events)")
    return log


def _table_of(stream: IO[bytes], path: Path) -> pa.Table:
    """The columns of a run, once their price is known; no text stands twice in memory."""
    where, types = _columns()
    known = {*types, "event", "data"}
    parquet = pq.ParquetFile(stream)
    check_price(parquet, stream, path, 2 * len(known))
    once = [parquet.schema.column(i) for i in range(parquet.metadata.num_columns)]
    texts = [column.path for column in once if column.physical_type == "BYTE_ARRAY"]
    stream.seek(0)
    parquet = pq.ParquetFile(stream, read_dictionary=texts, page_checksum_verification=True)
    table = parquet.read(columns=[name for name in parquet.schema_arrow.names if name in known])
    chunks = [c for column in table.columns for c in column.chunks]
    spelled = sum(_spelled(c) for c in chunks if isinstance(c, pa.DictionaryArray))
    check_unpacked(path, spelled, os.fstat(stream.fileno()).st_size)
    return table


def _spelled(texts: pa.DictionaryArray) -> int:
    """Bytes of all texts, those that stand once for many rows counted for each."""
    lengths = pc.take(pc.binary_length(texts.dictionary), texts.indices)
    return int(pc.sum(lengths.cast(pa.int64())).as_py() or 0)


def _first_line(fault: Exception) -> str:
    return (str(fault).splitlines() or [type(fault).__name__])[0][:120]


def _events(table: pa.Table) -> Iterator[Any]:
    """The events of a table in row order, each checked against its type."""
    where, _ = _columns()
    tags = np.asarray(table["event"].cast(pa.string()).to_pylist(), dtype=object)
    place = np.cumsum(tags != ARRAY) - 1  # of a row among the events, wherever arrays stand
    made: list[Any] = [None] * int((tags != ARRAY).sum())
    for kind in KINDS:
        rows = np.flatnonzero(tags == _tag(kind))
        if not len(rows):
            continue
        part = table.take(pa.array(rows))
        hints = typing.get_type_hints(kind)
        defaults = reversed(kind.__struct_defaults__)
        later = {
            field: value
            for field, value in zip(reversed(kind.__struct_fields__), defaults, strict=False)
            if isinstance(value, (str, int, float))
        }
        values = [
            _within(kind, field, _read(part[column].to_pylist(), hints[field]), hints[field])
            if column in part.column_names or field not in later
            else [later[field]] * len(rows)  # runs of before know nothing of it
            for field, column in where[kind].items()
        ]
        for at, fields in zip(place[rows].tolist(), zip(*values, strict=True), strict=True):
            made[at] = kind(*fields)
    if any(event is None for event in made):
        raise ValueError("an event of an unknown kind")
    yield from made


def _read(values: list[Any], annotation: Any) -> list[Any]:
    """Column values checked against the field's type, strictly."""
    if typing.get_origin(annotation) is dict:
        values = [json.loads(value) for value in values]
    return msgspec.convert(values, list[annotation])


def _within(kind: type[Event], field: str, values: list[Any], annotation: Any) -> list[Any]:
    """The values, none beyond what views count with: places in 32 bits, moments that have an
    order and a difference."""
    if annotation is int and kind is not Opened:
        least = LEAST.get(field, -PLACES)
        if min(values) < least or max(values) > PLACES:
            raise ValueError(f"{_tag(kind)} {field}: a number outside {least:,} to {PLACES:,}")
    is_moment = field in ("time", "start") and annotation is float
    if is_moment and not (np.abs(np.array(values, float)) <= MOMENTS).all():
        raise ValueError(f"{_tag(kind)} {field}: no moment, or one beyond {MOMENTS:g} s")
    return values


def _arrays(table: pa.Table) -> dict[str, np.ndarray]:
    if "data" not in table.column_names:
        return {}
    tags = table["event"].cast(pa.string()).to_pylist()
    part = table.take(pa.array([i for i, tag in enumerate(tags) if tag == ARRAY], pa.int64()))
    arrays = {}
    for row in part.select(["ref", "text", "shape", "data"]).to_pylist():
        dtype = np.dtype(row["text"])
        if dtype.kind not in PLAIN:
            raise ValueError("an array of neither numbers nor texts")
        arrays[row["ref"]] = np.frombuffer(row["data"], dtype).reshape(row["shape"]).copy()
    return arrays
