"""What reading a Parquet table would cost, from its footer and page headers, before it is read.

A few kilobytes can stand for gigabytes: one long text that every row points at, a page of zeros.
The footer's own word for its sizes is not believed: the header of each page is looked at.
"""

import os
from pathlib import Path
from typing import IO

import pyarrow.parquet as pq

from engine.core.errors import BadInput
from engine.core.limits import check, check_unpacked

CHUNKS = 200_000  # columns of all row groups together
HEADER = 1 << 16  # bytes in which a page's header must end; its statistics may be long
WIDTH = 8  # bytes of a value in memory, texts apart


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
    for group in range(facts.num_row_groups):
        for place in range(facts.num_columns):
            column = facts.row_group(group).column(place)
            start = column.data_page_offset
            if column.has_dictionary_page:
                start = min(start, column.dictionary_page_offset or start)
            pages = _pages(stream, start, column.total_compressed_size, packed)
            unpacked += max(pages, column.num_values * WIDTH)
            check_unpacked(path, unpacked, packed)


def _pages(stream: IO[bytes], start: int, size: int, whole: int) -> int:
    """Bytes that the pages of a column's chunk say they unpack to."""
    if start < 0 or size < 0 or start + size > whole:
        raise ValueError("a column outside the file")
    unpacked, at = 0, start
    while at < start + size:
        stream.seek(at)
        head = _Header(stream.read(HEADER))
        sizes = head.fields(2, 3)
        if len(sizes) != 2 or min(sizes.values()) < 0:
            raise ValueError("a page without its sizes")
        unpacked += sizes[2]
        at += head.place + sizes[3]
    return unpacked


class _Header:
    """A page's header in Thrift's compact form, of which two numbers matter."""

    def __init__(self, data: bytes) -> None:
        self.data, self.place = data, 0

    def fields(self, *wanted: int) -> dict[int, int]:
        """The numbers of the struct's fields `wanted`; afterwards `place` is its length."""
        found: dict[int, int] = {}
        number = 0
        while (byte := self._byte()) != 0:
            kind, step = byte & 15, byte >> 4
            number = number + step if step else self._signed()
            if kind in (4, 5, 6):
                value = self._signed()
                if number in wanted:
                    found[number] = value
            else:
                self._skip(kind)
        return found

    def _skip(self, kind: int, deep: int = 0) -> None:
        if deep > 8:
            raise ValueError("a page's header too deep")
        if kind == 3:
            self.place += 1
        elif kind in (4, 5, 6):
            self._unsigned()
        elif kind == 7:
            self.place += 8
        elif kind == 8:
            length = self._unsigned()  # reading it moves the place, too
            self.place += length
        elif kind in (9, 10):
            byte = self._byte()
            count = byte >> 4 if byte >> 4 < 15 else self._unsigned()
            for _ in range(min(count, HEADER)):
                self._skip(byte & 15, deep + 1)
        elif kind == 12:
            while (byte := self._byte()) != 0:
                if not byte >> 4:
                    self._signed()
                self._skip(byte & 15, deep + 1)
        elif kind not in (1, 2):
            raise ValueError("a page's header of an unknown form")

    def _byte(self) -> int:
        if self.place >= len(self.data):
            raise ValueError("a page's header without an end")
        self.place += 1
        return self.data[self.place - 1]

    def _unsigned(self) -> int:
        value = shift = 0
        while (byte := self._byte()) & 128:
            value, shift = value | (byte & 127) << shift, shift + 7
            if shift > 63:
                raise ValueError("a number too long in a page's header")
        return value | byte << shift

    def _signed(self) -> int:
        value = self._unsigned()
        return (value >> 1) ^ -(value & 1)
