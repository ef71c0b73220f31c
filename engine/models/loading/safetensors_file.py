"""One safetensors file: its header checked to the last byte, its tensors read one at a time.

Nothing is trusted: lengths must fit the file before anything is allocated, every tensor's extent
must equal shape × width, and tensors must cover the data without overlap or gap.
"""

import json
import math
import os
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from engine.core.errors import BadInput
from engine.core.limits import check, open_regular

LARGEST_RANK = 8
SIGNS = {b":": 4, b",": 13}  # of JSON, that describe one tensor of the largest rank
ALSO = 1 << 19  # such signs in the texts of a header's metadata
WIDTHS = {
    **dict.fromkeys(("BOOL", "U8", "I8", "F8_E4M3", "F8_E5M2", "F8_E8M0"), 1),
    **dict.fromkeys(("I16", "U16", "F16", "BF16"), 2),
    **dict.fromkeys(("I32", "U32", "F32"), 4),
    **dict.fromkeys(("I64", "U64", "F64"), 8),
}
RAW = {
    "I8": np.int8, "U8": np.uint8, "F8_E4M3": np.uint8, "F8_E5M2": np.uint8, "I32": np.int32,
    "I64": np.int64, "F16": np.float16, "F32": np.float32,
}  # fmt: skip
FLOATS = {
    "F16": torch.float16,
    "BF16": torch.bfloat16,
    "F32": torch.float32,
    "F64": torch.float64,
}


@dataclass(frozen=True, slots=True)
class Stored:
    """A tensor in a file: `start` counts from the beginning of the file."""

    path: Path
    name: str
    dtype: str
    shape: tuple[int, ...]
    start: int
    bytes: int

    def read(self) -> Tensor:
        """The tensor, in its own type and its own memory. Raises BadInput where it is not a float
        or the file has shrunk since its header was read."""
        if self.dtype not in FLOATS:
            raise BadInput(
                f"{self.path}: tensor {self.name!r} is {self.dtype}; "
                f"supported are {', '.join(FLOATS)}: convert the checkpoint to one of them"
            )
        tensor = torch.empty(self.shape, dtype=FLOATS[self.dtype])
        with open_regular(self.path) as file:
            file.seek(self.start)
            _fill(file, tensor.flatten().view(torch.uint8).numpy().data, self)
        return tensor

    def raw(self) -> np.ndarray:
        """The tensor's numbers, or its codes; bfloat16 as float32. Raises BadInput as `read`."""
        if self.dtype == "BF16":
            return self.read().float().numpy()
        if self.dtype not in RAW:
            raise BadInput(
                f"{self.path}: tensor {self.name!r} is {self.dtype}: not codes or scales"
            )
        array = np.empty(self.shape, RAW[self.dtype])
        with open_regular(self.path) as file:
            file.seek(self.start)
            _fill(file, array.reshape(-1).view(np.uint8).data, self)
        return array


def _fill(file: Any, room: memoryview, stored: Stored) -> None:
    done = 0
    while done < len(room):
        count = file.readinto(room[done:])
        if not count:
            raise BadInput(f"{stored.path}: truncated inside tensor {stored.name!r}; copy it again")
        done += count


def read_header(path: Path) -> dict[str, Stored]:
    """Every tensor of a file by name. Raises BadInput naming the file and the entry."""
    try:
        with open_regular(path) as file:
            size = os.fstat(file.fileno()).st_size
            length = int.from_bytes(file.read(8), "little")
            if size < 8 or length > size - 8:
                raise BadInput(
                    f"{path}: header of {length} bytes does not fit the file's {size}; "
                    "truncated or not safetensors: copy it again"
                )
            check(path, "bytes of header", length, "header_bytes")
            text = file.read(length)
    except OSError as error:
        raise BadInput(f"{path}: cannot be read ({error.strerror}); check the file") from None
    entries = _entries(path, text)
    start = 8 + length
    found = {n: _stored(path, n, e, start, size) for n, e in entries.items() if n != "__metadata__"}
    _check_cover(path, list(found.values()), start, size)
    return found


def _entries(path: Path, text: bytes) -> dict[str, Any]:
    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        fields = dict(pairs)
        if len(fields) != len(pairs):
            counts = Counter(name for name, _ in pairs)
            twice = next(name for name in counts if counts[name] > 1)
            raise BadInput(f"{path}: header names {twice[:80]!r} twice; the file is damaged")
        return fields

    # Before they are parsed: each takes a thousand times as long as to be counted.
    tensors = text.count(b"{")
    check(path, "tensors", tensors - 1, "tensors")
    for sign, most in SIGNS.items():
        if text.count(sign) > most * tensors + ALSO:
            raise BadInput(f"{path}: header says more than its tensors are; the file is damaged")
    try:
        entries = json.loads(text.decode("utf-8"), object_pairs_hook=unique)
    except BadInput:
        raise
    except (ValueError, RecursionError):
        raise BadInput(f"{path}: header is not JSON; the file is damaged: copy it again") from None
    if not isinstance(entries, dict):
        raise BadInput(f"{path}: header is not an object; the file is damaged: copy it again")
    check(path, "tensors", len(entries), "tensors")
    return entries


def _stored(path: Path, name: str, entry: Any, start: int, size: int) -> Stored:
    def bad(message: str) -> BadInput:
        return BadInput(f"{path}: tensor {name[:80]!r} {message}; the file is damaged")

    if not isinstance(entry, dict):
        raise bad("has no description")
    dtype = entry.get("dtype")
    if not isinstance(dtype, str) or dtype not in WIDTHS:
        raise bad(f"has unknown dtype {str(dtype)[:40]!r}")
    shape, span = _counts(entry.get("shape")), _counts(entry.get("data_offsets"))
    if shape is None or len(shape) > LARGEST_RANK:
        raise bad("has no valid shape")
    if span is None or len(span) != 2 or span[0] > span[1]:
        raise bad("has no valid data_offsets")
    extent = math.prod(shape) * WIDTHS[dtype]
    if extent != span[1] - span[0]:
        raise bad(f"has shape {shape} of {extent} bytes in {span[1] - span[0]} bytes of data")
    if start + span[1] > size:
        raise BadInput(
            f"{path}: truncated: tensor {name[:80]!r} ends at byte {start + span[1]} of {size}; "
            "copy the file again"
        )
    return Stored(path, name, dtype, tuple(shape), start + span[0], extent)


def _counts(value: Any) -> list[int] | None:
    """A list of whole numbers that fit 62 bits, or None."""
    known = isinstance(value, list) and all(type(v) is int and 0 <= v < 1 << 62 for v in value)
    return value if known else None


def _check_cover(path: Path, stored: list[Stored], start: int, size: int) -> None:
    at = start
    for tensor in sorted(stored, key=lambda t: (t.start, t.bytes)):
        if tensor.start != at:
            fault = "overlaps another" if tensor.start < at else "follows bytes of no tensor"
            raise BadInput(f"{path}: tensor {tensor.name!r} {fault}; the file is damaged")
        at += tensor.bytes
    if at != size:
        raise BadInput(f"{path}: {size - at} bytes after the last tensor; the file is damaged")
