"""A Chrome trace cut into entries: a stream of any size comes in, lists of entries go out.

The bytes are decoded a few megabytes at a time; what is not an entry is counted, never fatal.
"""

import json
import os
import re
import zlib
from collections.abc import Iterator
from itertools import chain
from math import nan
from pathlib import Path
from typing import IO, Any

import msgspec

from engine.core.errors import BadInput
from engine.core.limits import check, check_unpacked, open_regular, refuse_packed

PIECE = 8 << 20  # bytes read at a time
HEAD = 64 << 20  # bytes in which the list of entries has to begin
LONGEST = 16 << 20  # bytes of one entry: what is longer and unreadable is not just unfinished
NEAR = 1 << 20  # bytes from the end of a piece in which an entry should end
TRIES = 6  # places looked at there before reading one by one
OPENS = re.compile(rb'"traceEvents"\s*:\s*\[')
BETWEEN = re.compile(rb"\}\s*,\s*\{")
NEXT = re.compile(r'\}\s*,\s*(?=\{\s*")')
MAGIC = b"\x1f\x8b"
PACKED = 1 << 16  # bytes unpacked from at a time
SMALL = 256  # bytes of a packed file that another follows, on average; smaller ones cost too much
FREE = 1 << 20  # bytes of such that are let pass
FRUITLESS = 64 << 20  # characters looked at in vain before the rest is given up
NOTHING = 64  # of them, at least, for each value that is no entry: a digit takes as long
FAILED = 100_000  # of them for an entry nested too deep


class Entry(msgspec.Struct, gc=False):
    """One entry: times in microseconds, NaN where none is said; `args` still as text."""

    ph: str = ""
    name: str = ""
    cat: str = ""
    pid: int | str = 0
    tid: int | str = 0
    ts: float = nan
    dur: float = nan
    args: msgspec.Raw = msgspec.Raw(b"")


ENTRIES = msgspec.json.Decoder(list[Entry])


class Pieces:
    """Iterates over lists of entries. Afterwards `left_out` says how many could not be read,
    `cut` whether the file ends in the middle, and `head` what stands before the entries."""

    def __init__(self, path: Path) -> None:
        self.path, self.left_out, self.cut, self.head = path, 0, False, b""
        self._ended = False
        self.fruitless = 0  # characters of what was no entry

    def __iter__(self) -> Iterator[list[Entry]]:
        try:
            with open_regular(self.path) as stream:
                check(self.path, "bytes", os.fstat(stream.fileno()).st_size, "unpacked_bytes")
                yield from self._entries(self._gathered(self._bytes(stream)))
        except FileNotFoundError:
            raise BadInput(f"{self.path}: no such file; give a Chrome trace (.json)") from None
        except OSError as fault:
            raise BadInput(f"{self.path}: cannot be read ({fault.strerror or fault})") from None

    def _gathered(self, parts: Iterator[bytes]) -> Iterator[bytes]:
        """Pieces of the usual size from parts of any."""
        held, size = list[bytes](), 0
        for part in parts:
            held.append(part)
            size += len(part)
            if size >= PIECE:
                yield b"".join(held)
                held, size = [], 0
        yield b"".join(held)

    def _bytes(self, stream: IO[bytes]) -> Iterator[bytes]:
        """The file's bytes, unpacked where they are packed, up to where they are damaged."""
        start = stream.read(len(MAGIC))
        refuse_packed(start + stream.read(4), self.path, "gzip")
        stream.seek(len(start))
        yield from (
            self._unpacked(start, stream)
            if start == MAGIC
            else chain([start], iter(lambda: stream.read(PIECE), b""))
        )

    def _unpacked(self, more: bytes, stream: IO[bytes]) -> Iterator[bytes]:
        unpack, begun, files = zlib.decompressobj(31), False, 1
        packed = unpacked = 0
        while more or (more := stream.read(PACKED)):
            try:
                data = unpack.decompress(more, PIECE)
            except zlib.error:
                self.cut = True
                return
            begun = not unpack.eof
            rest = unpack.unconsumed_tail if begun else unpack.unused_data
            packed, unpacked, more = packed + len(more) - len(rest), unpacked + len(data), rest
            check_unpacked(self.path, unpacked, packed)
            if data:
                yield data
            if not begun:  # one packed file may follow another
                unpack, files = zlib.decompressobj(31), files + 1
                if files * SMALL > packed + FREE:
                    raise BadInput(f"{self.path}: {files:,} packed files in one; pack it again")
        self.cut |= begun

    def _entries(self, data: Iterator[bytes]) -> Iterator[list[Entry]]:
        rest = self._begin(data)
        for more in chain([b""], data):
            rest += more
            end, found = self._whole(rest)
            if found is None and len(rest) > 4 * LONGEST:
                raise BadInput(
                    f"{self.path}: an entry of over {4 * LONGEST >> 20} MiB; not a trace"
                )
            if found is not None:
                yield found
                rest = rest[end:]
            if self._ended:
                return
        found, _ = self._one_by_one(rest, last=True)
        yield found

    def _begin(self, data: Iterator[bytes]) -> bytes:
        """What follows the opening bracket of the list of entries."""
        start = b""
        while True:
            more = next(data, b"")
            start += more
            text = start.lstrip(b"\xef\xbb\xbf \t\r\n")
            if text.startswith(b"["):
                return text[1:]
            found = OPENS.search(start)
            if found:
                self.head = start[: found.start()]
                return start[found.end() :]
            if not more or len(start) > HEAD or not text.startswith(b"{"):
                raise BadInput(
                    f"{self.path}: not a Chrome trace (no list of traceEvents in it); give one "
                    "that a profiler wrote as JSON, packed with gzip or not"
                )

    def _whole(self, buffer: bytes) -> tuple[int, list[Entry] | None]:
        """(bytes used, entries) up to the last entry that ends in `buffer`; None for none yet."""
        near = [m.start() for m in BETWEEN.finditer(buffer, max(0, len(buffer) - NEAR))]
        for place in near[: -TRIES - 1 : -1]:
            try:
                found = ENTRIES.decode(b"[" + buffer[: place + 1] + b"]")
            except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
                continue
            return buffer.index(b",", place) + 1, found
        found, end = self._one_by_one(buffer, last=False)
        return end, found if end else None

    def _one_by_one(self, buffer: bytes, last: bool) -> tuple[list[Entry], int]:
        """The same, slowly, leaving out what is no entry; (entries, bytes used)."""
        text = buffer.decode("utf-8", "surrogateescape")
        decoder, found, at = json.JSONDecoder(), list[Entry](), 0
        while True:
            while at < len(text) and text[at] in " \t\r\n,":
                at += 1
            if at >= len(text):
                self.cut |= last
                break
            if text[at] == "]":
                self._ended = True
                break
            try:
                value, at = decoder.raw_decode(text, at)
            except (ValueError, RecursionError) as fault:
                unfinished = not last and len(text) - at < LONGEST
                following = None if unfinished else NEXT.search(text, at)
                self.fruitless += getattr(fault, "pos", at + FAILED) - at
                if self.fruitless > FRUITLESS:
                    self.cut = self._ended = True
                    break
                if following is None:
                    self.cut |= last
                    break
                at, value = following.end(), None
            entry = _entry(value)
            if entry is None:
                self.left_out += 1
                self.fruitless += NOTHING
                if self.fruitless > FRUITLESS:
                    self.cut = self._ended = True
                    break
            else:
                found.append(entry)
        return found, len(text[:at].encode("utf-8", "surrogateescape"))


def _entry(value: Any) -> Entry | None:
    """An entry from what JSON gave, with numbers that stand as text read as numbers."""
    if not isinstance(value, dict):
        return None
    ts, dur = value.get("ts"), value.get("dur")
    try:
        return Entry(
            ph=_words(value.get("ph", "")),
            name=_words(value.get("name", "")),
            cat=_words(value.get("cat", "")),
            pid=_place(value.get("pid", 0)),
            tid=_place(value.get("tid", 0)),
            ts=nan if ts is None else float(ts),
            dur=nan if dur is None else float(dur),
            args=msgspec.Raw(json.dumps(value.get("args") or {}).encode()),
        )
    except (TypeError, ValueError, OverflowError, RecursionError):
        return None


def _place(value: Any) -> int | str:
    return value if isinstance(value, int) else _words(value)


def _words(value: Any) -> str:
    """As text that can be written again: half of a character pair becomes a question mark."""
    return str(value).encode("utf-8", "replace").decode()
