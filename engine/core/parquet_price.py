"""What reading a Parquet table would cost, from its footer and page headers, before it is read.

A few kilobytes can stand for gigabytes: one long text that every row points at, a page of zeros.
The footer's own word for its sizes is not believed: the header of each page is looked at. The
footer is read here and not by pyarrow, whose facts of a column abort the process on some damage.
"""

import os
from pathlib import Path
from typing import IO, Any

import pyarrow.parquet as pq

from engine.core.errors import BadInput
from engine.core.limits import check, check_unpacked

CHUNKS = 20_000  # columns of all row groups together
FOOTER = 4 << 20  # bytes; a run of 20 million events has a tenth of it
LENGTH = 8  # bytes after the footer: its length and the format's mark
HEADER = 1 << 16  # bytes in which a page's header must end; its statistics may be long
WIDTH = 8  # bytes of a value in memory, texts apart

# Fields by their numbers in the format's Thrift definition, as `Compact.struct` takes them.
VALUES, PACKED, DATA, DICTIONARY = 5, 7, 9, 11  # of a column's chunk
GROUPS, COLUMNS, FACTS = 4, 1, 3  # of the footer, a row group, a column
TABLE = {GROUPS: {COLUMNS: {FACTS: {VALUES: None, PACKED: None, DATA: None, DICTIONARY: None}}}}
PAGE_UNPACKED, PAGE_PACKED = 2, 3  # of a page's header
PAGE = {PAGE_UNPACKED: None, PAGE_PACKED: None}

# Thrift's compact form, in which they are written.
DEEPEST = 12  # structs and lists within each other; Parquet's footer has six
TRUE, FALSE, BYTE, DOUBLE, BINARY, STRUCT = 1, 2, 3, 7, 8, 12
NUMBERS, LISTS = (4, 5, 6), (9, 10)  # of 16, 32 and 64 bits; lists and sets


def check_price(parquet: pq.ParquetFile, stream: IO[bytes], path: Path, columns: int) -> None:
    """Raises BadInput where the table has more than `columns` columns or would unpack to too much.

    Raises ValueError for a table whose parts do not lie in the file.
    """
    facts, packed = parquet.metadata, os.fstat(stream.fileno()).st_size
    check(path, "rows", facts.num_rows, "entries")
    if facts.num_columns > columns or facts.num_row_groups * facts.num_columns > CHUNKS:
        raise BadInput(
            f"{path}: {facts.num_columns:,} columns in {facts.num_row_groups:,} groups; not a run"
        )
    unpacked = 0
    for column in _chunks(stream, path, packed):
        start = column[DATA]
        start = min(start, column.get(DICTIONARY) or start)
        pages = _pages(stream, start, column[PACKED], packed)
        unpacked += max(pages, column[VALUES] * WIDTH)
        check_unpacked(path, unpacked, packed)


def _chunks(stream: IO[bytes], path: Path, whole: int) -> list[dict[int, int]]:
    """What the footer says of each column of each row group."""
    stream.seek(whole - LENGTH)
    length = int.from_bytes(stream.read(4), "little")
    if length > FOOTER:
        raise BadInput(f"{path}: a footer of {length:,} bytes; not a run")
    stream.seek(whole - LENGTH - length)
    table = Compact(stream.read(length)).struct(TABLE)
    found = [column.get(FACTS, {}) for group in table[GROUPS] for column in group[COLUMNS]]
    if any({VALUES, PACKED, DATA} - facts.keys() for facts in found):
        raise ValueError("a column without its sizes")
    return found


def _pages(stream: IO[bytes], start: int, size: int, whole: int) -> int:
    """Bytes that the pages of a column's chunk say they unpack to."""
    if start < 0 or size < 0 or start + size > whole:
        raise ValueError("a column outside the file")
    unpacked, at = 0, start
    while at < start + size:
        stream.seek(at)
        head = Compact(stream.read(HEADER))
        sizes = head.struct(PAGE)
        if len(sizes) != 2 or min(sizes.values()) < 0:
            raise ValueError("a page without its sizes")
        unpacked += sizes[PAGE_UNPACKED]
        at += head.place + sizes[PAGE_PACKED]
    return unpacked


class Compact:
    """Thrift's compact form, read from the start as far as asked; `place` is how far.

    Every length is held against the bytes there are. Raises ValueError for another form.
    """

    def __init__(self, data: bytes) -> None:
        self.data, self.place = data, 0

    def struct(self, wanted: dict[int, Any]) -> dict[int, Any]:
        """Of a struct's fields those `wanted`, by number: None for a number, and for a struct, or
        a list of structs, the fields wanted of it."""
        found: dict[int, Any] = {}
        number = 0
        while (byte := self._byte()) != 0:
            kind, step = byte & 15, byte >> 4
            number = number + step if step else self._signed()
            if number in wanted:
                found[number] = self._value(kind, wanted[number])
            else:
                self._skip(kind)
        return found

    def _value(self, kind: int, wanted: dict[int, Any] | None) -> Any:
        if wanted is None and kind in NUMBERS:
            return self._signed()
        if wanted is not None and kind == STRUCT:
            return self.struct(wanted)
        if wanted is not None and kind in LISTS:
            inner, count = self._list()
            if inner == STRUCT:
                return [self.struct(wanted) for _ in range(count)]
        raise ValueError("a field of another kind than its format's")

    def _skip(self, kind: int, deep: int = 0) -> None:
        if deep > DEEPEST:
            raise ValueError("a struct too deep")
        if kind in NUMBERS:
            self._unsigned()
        elif kind == BINARY:
            self._move(self._unsigned())
        elif kind in (BYTE, DOUBLE):
            self._move(1 if kind == BYTE else 8)
        elif kind in LISTS:
            inner, count = self._list()
            for _ in range(count):
                if inner in (TRUE, FALSE):
                    self._move(1)
                else:
                    self._skip(inner, deep + 1)
        elif kind == STRUCT:
            while (byte := self._byte()) != 0:
                if not byte >> 4:
                    self._signed()
                self._skip(byte & 15, deep + 1)
        elif kind not in (TRUE, FALSE):
            raise ValueError("a field of an unknown kind")

    def _list(self) -> tuple[int, int]:
        """The kind and the number of its elements, each of which has a byte at least."""
        byte = self._byte()
        count = byte >> 4 if byte >> 4 < 15 else self._unsigned()
        if count > len(self.data) - self.place:
            raise ValueError("a list longer than its bytes")
        return byte & 15, count

    def _byte(self) -> int:
        self._move(1)
        return self.data[self.place - 1]

    def _move(self, length: int) -> None:
        self.place += length
        if self.place > len(self.data):
            raise ValueError("a struct without an end")

    def _unsigned(self) -> int:
        value = shift = 0
        while (byte := self._byte()) & 128:
            value, shift = value | (byte & 127) << shift, shift + 7
            if shift > 63:
                raise ValueError("a number too long")
        return value | byte << shift

    def _signed(self) -> int:
        value = self._unsigned()
        return (value >> 1) ^ -(value & 1)
