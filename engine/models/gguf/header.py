"""GGUF header: a file's metadata and where its tensors lie, each length checked before it is read.

Nothing is trusted: counts must fit the file before anything is allocated, tensors must lie inside
it without overlap. Layout: ggml's docs/gguf.md, versions 2 and 3, little-endian.
"""

import math
import os
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np

from engine.core.errors import BadInput
from engine.core.limits import check, open_regular

MAGIC = b"GGUF"
VERSIONS = (2, 3)
NUMBERS = {
    0: "<B", 1: "<b", 2: "<H", 3: "<h", 4: "<I", 5: "<i", 6: "<f", 7: "<?", 10: "<Q", 11: "<q",
    12: "<d",
}  # fmt: skip
STRING, ARRAY = 8, 9
LARGEST_RANK = 4
NAME = 64 * 1024  # bytes of a key or a tensor's name
TEXTS = 1 << 21  # of lists: tokens and merges, of public models under 900,000
# ggml's number of a type: name, numbers of a block, bytes of a block.
TYPES = {
    0: ("F32", 1, 4), 1: ("F16", 1, 2), 30: ("BF16", 1, 2), 2: ("Q4_0", 32, 18),
    8: ("Q8_0", 32, 34), 12: ("Q4_K", 256, 144), 14: ("Q6_K", 256, 210),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Blocks:
    """A tensor in a file: `shape` as torch has it (outputs first), `start` from its begin."""

    path: Path
    name: str
    kind: str
    shape: tuple[int, ...]
    start: int
    bytes: int

    def part(self, number: int) -> "Blocks":
        """One of the tensors that lie in it one behind the other, along its first dimension."""
        each = self.bytes // self.shape[0]
        return Blocks(
            self.path, self.name, self.kind, self.shape[1:], self.start + number * each, each
        )

    def data(self) -> np.ndarray:
        """Its bytes. Raises BadInput where the file has shrunk since its header was read."""
        with open_regular(self.path) as file:
            file.seek(self.start)
            found = file.read(self.bytes)
        if len(found) != self.bytes:
            raise BadInput(f"{self.path}: truncated inside tensor {self.name!r}; copy it again")
        return np.frombuffer(found, np.uint8)


@dataclass(frozen=True, slots=True)
class Header:
    """`metadata` by key: numbers, strings, flags and lists of them."""

    path: Path
    metadata: dict[str, Any]
    tensors: dict[str, Blocks]


class _Cursor:
    """Reads on through a header, never past the file's end or the limit of a header."""

    def __init__(self, path: Path, file: IO[bytes]) -> None:
        self.path, self.file = path, file
        self.size, self.at, self.texts = os.fstat(file.fileno()).st_size, 0, 0

    def bad(self, what: str) -> BadInput:
        return BadInput(f"{self.path}: {what}; not a whole GGUF file: copy it again")

    def take(self, count: int) -> bytes:
        """The next `count` bytes."""
        if count > self.size - self.at:
            raise self.bad(f"header asks for {count} bytes at {self.at} of {self.size}")
        check(self.path, "bytes of header", self.at + count, "header_bytes")
        found = self.file.read(count)
        if len(found) != count:
            raise self.bad("header ends early")
        self.at += count
        return found

    def number(self, kind: int) -> Any:
        """A number of GGUF's type `kind`."""
        form = NUMBERS[kind]
        return struct.unpack(form, self.take(struct.calcsize(form)))[0]

    def count(self) -> int:
        """A 64-bit count."""
        return int(self.number(10))

    def string(self, most: int = 1 << 62) -> str:
        """A string of at most `most` bytes."""
        length = self.count()
        if length > most:
            raise self.bad(f"a name of {length} bytes")
        try:
            return self.take(length).decode("utf-8")
        except UnicodeDecodeError:
            raise self.bad("a string that is not UTF-8") from None

    def value(self, kind: int) -> Any:
        """A value of type `kind`; lists hold numbers or strings only."""
        if kind in NUMBERS:
            return self.number(kind)
        if kind == STRING:
            return self.string()
        if kind != ARRAY:
            raise self.bad(f"metadata of unknown type {kind}")
        inner, count = self.number(4), self.count()
        if inner in NUMBERS:
            width = struct.calcsize(NUMBERS[inner])
            return [v for (v,) in struct.iter_unpack(NUMBERS[inner], self.take(count * width))]
        if inner != STRING or count > (self.size - self.at) // 8:
            raise self.bad(f"a list of {count} values of type {inner}")
        check(self.path, "bytes of header", self.at + 8 * count, "header_bytes")
        self.texts += count
        if self.texts > TEXTS:
            raise self.bad(f"{self.texts:,} texts, over {TEXTS:,}")
        return [self.string() for _ in range(count)]


def read_header(path: Path) -> Header:
    """The header of a file. Raises BadInput naming the file and what is wrong."""
    try:
        with open_regular(path) as file:
            return _read(_Cursor(path, file))
    except OSError as error:
        raise BadInput(f"{path}: cannot be read ({error.strerror}); check the file") from None


def _read(cursor: _Cursor) -> Header:
    if cursor.take(4) != MAGIC:
        raise cursor.bad("does not begin with GGUF")
    version = cursor.number(4)
    if version not in VERSIONS:
        raise cursor.bad(f"GGUF version {version}, little-endian 2 and 3 are read")
    tensors, keys = cursor.count(), cursor.count()
    check(cursor.path, "tensors", tensors, "tensors")
    check(cursor.path, "keys of metadata", keys, "tensors")
    metadata: dict[str, Any] = {}
    for _ in range(keys):
        key = cursor.string(NAME)
        if key in metadata:
            raise cursor.bad(f"metadata names {key[:80]!r} twice")
        metadata[key] = cursor.value(cursor.number(4))
    described = [_described(cursor) for _ in range(tensors)]
    return Header(cursor.path, metadata, _placed(cursor, described, _alignment(cursor, metadata)))


def _alignment(cursor: _Cursor, metadata: dict[str, Any]) -> int:
    found = metadata.get("general.alignment", 32)
    if type(found) is not int or not 1 <= found <= 1 << 20 or found & (found - 1):
        raise cursor.bad(f"alignment of {str(found)[:20]}")
    return found


def _described(cursor: _Cursor) -> tuple[str, list[int], int, int]:
    name, rank = cursor.string(NAME), cursor.number(4)
    if not 1 <= rank <= LARGEST_RANK:
        raise cursor.bad(f"tensor {name[:80]!r} has {rank} dimensions")
    return name, [cursor.count() for _ in range(rank)], cursor.number(4), cursor.count()


def _placed(
    cursor: _Cursor, described: list[tuple[str, list[int], int, int]], alignment: int
) -> dict[str, Blocks]:
    start = -(-cursor.at // alignment) * alignment
    found: dict[str, Blocks] = {}
    for name, sides, kind, offset in described:
        if kind not in TYPES:
            raise BadInput(
                f"{cursor.path}: tensor {name[:80]!r} is of ggml's type {kind}; read are "
                f"{', '.join(each for each, _, _ in TYPES.values())}: convert the file to one"
            )
        named, each, width = TYPES[kind]
        size, rest = divmod(math.prod(sides) * width, each)
        if name in found or rest or sides[0] % each or start + offset + size > cursor.size:
            raise cursor.bad(f"tensor {name[:80]!r} named twice, in broken blocks or past the end")
        shape = tuple(reversed(sides))
        found[name] = Blocks(cursor.path, name, named, shape, start + offset, size)
    end = start
    for tensor in sorted(found.values(), key=lambda t: (t.start, t.bytes)):
        if tensor.start < end:
            raise cursor.bad(f"tensor {tensor.name[:80]!r} overlaps another")
        # Between two lies what fills up to the alignment; more is of a type or shape told wrong.
        if tensor.start >= end + alignment:
            raise cursor.bad(f"{tensor.start - end} bytes before tensor {tensor.name[:80]!r}")
        end = tensor.start + tensor.bytes
    return found
