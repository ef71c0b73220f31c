"""Price limits: what a file or a request from outside may cost, checked before the price is paid.

Bytes come from a file's own facts before any are read; sizes a header states are weighed before
memory is asked for; only regular files are opened, so that none blocks. Every refusal names the
limit and how to raise it. The limits are of the process, as `ulimit`'s are.
"""

import csv
import hashlib
import json
import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import IO, Any

from engine.core.errors import BadInput
from engine.core.names import suggest

PIECES, PIECE = 64, 4096  # of a file that is sampled, and bytes of each
VARIABLE = "WORKBENCH_LIMITS"  # of the environment, as the command line reads it
# By how their files begin.
PACKERS = {b"PK\3\4": "zip", b"\xfd7zXZ": "xz", b"BZh": "bzip2", b"\x28\xb5\x2f\xfd": "zstd",
           b"7z\xbc\xaf": "7-Zip", b"\x1f\x8b": "gzip"}  # fmt: skip


@dataclass(frozen=True)
class Limits:
    """The limits by name. Sizes in bytes, times in seconds of processor time."""

    config_bytes: int = 32 << 20  # JSON of a model folder; an index of 100,000 tensors: 10 MB
    config_entries: int = 1 << 20  # of one: its values, 100 bytes of memory each and more
    tokenizer_bytes: int = 64 << 20  # tokenizer.json; 33 MB with 262,144 tokens
    tokenizer_memory: int = 1 << 30  # what one text may take by unfamiliar patterns, its rules held
    tokenizer_seconds: float = 2.0
    template_bytes: int = 1 << 18  # a chat template; public ones stay under 30,000
    template_memory: int = 256 << 20  # what rendering one may take
    template_seconds: float = 0.2
    schema_memory: int = 256 << 20  # what compiling a grammar may take
    schema_seconds: float = 1.0
    program_memory: int = 64 << 20  # what running a generated program may take
    program_seconds: float = 0.5
    toml_bytes: int = 1 << 20  # a described run, fleet or sheet; its parser takes a second
    header_bytes: int = 100_000_000  # of a safetensors file, the format's own bound
    tensors: int = 250_000  # of a model; 384 experts in 60 layers, each with scales: 140,000
    notebook_bytes: int = 256 << 20
    output_bytes: int = 32 << 20  # what the cells of one notebook print and show
    text_bytes: int = 256 << 20  # a table, a text or a list of keys that somebody names
    token_bytes: int = 64 << 30  # a file of token ids, mapped; looked through once, 1 GB/s or so
    unpacked_free: int = 64 << 20  # bytes that unpack from a file however small it is
    unpacked_ratio: int = 100  # beyond them: bytes unpacked for a byte of the file
    unpacked_bytes: int = 8 << 30  # bytes unpacked of one file
    entries: int = 20_000_000  # rows of a run file, spans of a trace
    lanes: int = 10_000  # of a trace, told apart
    workload_tokens: int = 1 << 28  # of prompts that a workload holds at once, 4 bytes each
    nesting: int = 100  # JSON lists and objects within each other
    body_bytes: int = 4 << 20  # of a request
    body_entries: int = 1 << 17  # its texts, lists and objects; 1,024 messages have under 10,000
    answer_numbers: int = 1 << 18  # log-probabilities that a request may ask for


class _Current:
    """Holds the limits in force; `change` replaces them."""

    def __init__(self) -> None:
        self.limits = Limits()


CURRENT = _Current()


def limits() -> Limits:
    """The limits in force."""
    return CURRENT.limits


def change(**values: float) -> Limits:
    """Put other limits in force, for the whole process; returns those before.

    Raises BadInput for a name there is not or a value that is no positive number.
    """
    before = CURRENT.limits
    known = {field.name: field.type for field in fields(Limits)}
    for name, value in values.items():
        if name not in known:
            raise BadInput(f"limit {name!r}: no such limit; {suggest(name, list(known))}")
        if not 0 < value < float("inf"):
            raise BadInput(f"limit {name}: {value!r}; give a positive number")
    made = {name: value if known[name] is float else int(value) for name, value in values.items()}
    CURRENT.limits = replace(before, **made)  # type: ignore[arg-type]
    return before


@contextmanager
def changed(**values: float) -> Iterator[Limits]:
    """Other limits for a while."""
    before = change(**values)
    try:
        yield CURRENT.limits
    finally:
        CURRENT.limits = before


def change_as_told(text: str) -> None:
    """Put limits in force from text: `unpacked_bytes=16e9,lanes=1e5`. Raises BadInput."""
    told: dict[str, float] = {}
    for part in filter(None, (piece.strip() for piece in text.split(","))):
        name, _, value = part.partition("=")
        try:
            told[name.strip()] = float(value)
        except ValueError:
            raise BadInput(f"limit {part[:60]!r}: give NAME=NUMBER, with commas between") from None
    change(**told)


def over(where: object, what: str, name: str) -> BadInput:
    """The error for input that would cost more than the limit `name`: `what` says of what."""
    limit = getattr(CURRENT.limits, name)
    shown = f"{limit:g}" if isinstance(limit, float) else str(limit)
    return BadInput(
        f"{where}: {what}, over the limit {name}={shown}; if you trust it, set "
        f"{VARIABLE}={name}=NUMBER in the environment"
    )


def check(where: object, what: str, asked: float, name: str) -> None:
    """Raises `over` where `asked` is more than the limit `name`."""
    if asked > getattr(CURRENT.limits, name):
        raise over(where, f"{asked:,.6g} {what}", name)


def check_unpacked(where: object, unpacked: float, packed: int) -> None:
    """Raises BadInput where `unpacked` bytes are too many, or too many for the `packed` ones."""
    now = CURRENT.limits
    check(where, "bytes unpacked", unpacked, "unpacked_bytes")
    if unpacked > now.unpacked_free and unpacked > now.unpacked_ratio * packed:
        raise over(where, f"{packed:,} bytes unpack to {unpacked:,.6g} or more", "unpacked_ratio")


def open_regular(path: Path) -> IO[bytes]:
    """The file at `path`, open to be read: no pipe, device or socket, on which reading may block.

    Raises BadInput where it is none, OSError where it cannot be opened.
    """
    way = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    descriptor = os.open(path, way)
    try:
        kind = os.fstat(descriptor).st_mode
        if stat.S_ISDIR(kind):
            raise BadInput(f"{path}: not a plain file but a folder; name a file in it")
        if not stat.S_ISREG(kind):
            raise BadInput(f"{path}: not a plain file; copy what it gives into one")
        return os.fdopen(descriptor, "rb")
    except BaseException:
        os.close(descriptor)
        raise


def refuse_packed(start: bytes, where: object, taken: str = "") -> None:
    """Raises BadInput where a file that begins so is packed, by another than the one `taken`."""
    packer = next((name for begins, name in PACKERS.items() if start.startswith(begins)), taken)
    if packer != taken:
        other = f", or packed by {taken}" if taken else ""
        raise BadInput(f"{where}: packed by {packer}; give what is in it, unpacked{other}")


def require_regular(path: Path, instead: str) -> None:
    """Raises BadInput where there is no regular file at `path`; `instead`: what to give."""
    try:
        open_regular(path).close()
    except OSError as fault:
        raise BadInput(f"{path}: {(fault.strerror or str(fault)).lower()}; {instead}") from None


def regular(path: Path, name: str) -> Path:
    """`path` itself, for a library that opens files by their names: a regular file of at most the
    limit `name`. Raises as `read_bytes`."""
    with open_regular(path) as file:
        check(path, "bytes", os.fstat(file.fileno()).st_size, name)
    return path


def read_bytes(path: Path, name: str) -> bytes:
    """A whole file of at most the limit `name`; raises as `open_regular`, and BadInput over it."""
    with open_regular(path) as file:
        check(path, "bytes", os.fstat(file.fileno()).st_size, name)
        data = file.read(int(getattr(CURRENT.limits, name)) + 1)
    check(path, "bytes", len(data), name)  # it may have grown since
    return data


def file_digest(path: Path) -> str:
    """SHA-256 of a file's bytes; raises as `open_regular`."""
    with open_regular(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()  # type: ignore[arg-type]


def sampled_digest(paths: Iterable[Path]) -> str:
    """SHA-256 of files' names, sizes and pieces spread evenly over each, for those whose bytes
    would take minutes to read; raises as `open_regular`."""
    found = hashlib.sha256()
    for path in paths:
        with open_regular(path) as file:
            size = os.fstat(file.fileno()).st_size
            found.update(f"{path.name} {size}\n".encode())
            for number in range(PIECES):
                file.seek(max(0, size - PIECE) * number // (PIECES - 1))
                found.update(file.read(PIECE))
    return found.hexdigest()


def read_text(path: Path, name: str = "text_bytes") -> str:
    """A whole text in UTF-8, with its mark (BOM) or without; raises as `read_bytes`, and
    UnicodeDecodeError."""
    return "\n".join(read_bytes(path, name).decode("utf-8-sig").split("\r\n"))


def inside(folder: Path, name: str) -> Path:
    """The file `name` of a folder from outside, by its plain name.

    A link may lead within the folder or to the `blobs` of the Hugging Face cache it lies in.
    Raises BadInput for one that leads elsewhere: what the folder's maker points at is not theirs.
    """
    if not name or "/" in name or "\\" in name or "\0" in name or name in (".", ".."):
        raise BadInput(f"{folder}: names {name[:80]!r}; only files of the folder itself")
    path = folder / name
    try:
        home, target = folder.resolve(), path.resolve()
    except UnicodeError:  # half a character: no file is called so
        raise BadInput(f"{folder}: names {name[:80]!r}; only files of the folder itself") from None
    except (OSError, RuntimeError):  # a name too long; links in a circle
        raise BadInput(f"{path}: a link that leads nowhere; copy the file instead") from None
    if not target.is_relative_to(home) and target.parent != home.parent.parent / "blobs":
        raise BadInput(f"{path}: a link that leads outside the folder; copy the file instead")
    return path


def parse_json(data: bytes, where: object) -> Any:
    """The JSON value in UTF-8 `data`. Raises ValueError where it is none, BadInput over a limit."""
    try:
        value = json.loads(data.decode("utf-8-sig"))
    except RecursionError:
        raise ValueError("lists within lists beyond count") from None
    check(where, "levels of lists and objects", depth(value), "nesting")
    return value


def cells_of(line: str, where: object) -> list[str]:
    """The cells of one line of CSV. Raises BadInput where it is none, as of a cell of megabytes."""
    try:
        return next(csv.reader([line]))
    except (csv.Error, StopIteration) as fault:
        raise BadInput(f"{where}: no line of CSV ({fault or 'empty'}); mend that line") from None


def depth(value: Any) -> int:
    """How many lists and objects lie within each other in a JSON value."""
    level, deep = [value], 0
    while level := [one for one in level if isinstance(one, list | dict)]:
        deep += 1
        level = [
            inner for one in level for inner in (one.values() if isinstance(one, dict) else one)
        ]
    return deep
