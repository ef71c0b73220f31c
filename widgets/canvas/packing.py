"""Frames as bytes for the browser: a JSON header with every plain value, then raw arrays.

Layout: 4 bytes little-endian header length, the UTF-8 JSON header `{"values", "arrays"}` padded
with spaces so that what follows starts at a multiple of 8, then each array at its offset (counted
from the first array), 8-byte aligned. `arrays` gives name -> [type, shape, offset], with the types
JavaScript has.
"""

from collections.abc import Mapping
from typing import Any

import msgspec
import numpy as np

ALIGN = 8
TYPES = ("|u1", "|i1", "<u2", "<i2", "<u4", "<i4", "<f4", "<f8")


def browser_type(array: np.ndarray) -> np.ndarray:
    """The array as a little-endian type JavaScript has: bool as uint8, 64-bit integers as int32.

    Integers that do not fit 32 bits become float64.
    """
    if array.dtype.kind == "b":
        return array.astype(np.uint8)
    if array.dtype.kind in "iu" and array.dtype.itemsize == 8:
        small = array.size == 0 or (array.min() >= -(2**31) and array.max() < 2**31)
        return array.astype("<i4" if small else "<f8")
    if array.dtype.kind == "f" and array.dtype.itemsize == 2:
        return array.astype("<f4")
    array = array.astype(array.dtype.newbyteorder("<"), copy=False)
    if array.dtype.str not in TYPES:
        raise TypeError(f"an array of {array.dtype} cannot go into a frame")
    return array


def pack(frame: Mapping[str, Any]) -> bytes:
    """One frame as bytes. Arrays only at the top level; everything else must be plain JSON.

    Numbers that are not finite become null.
    """
    values, arrays, parts, offset = {}, {}, [], 0
    for name, value in frame.items():
        if not isinstance(value, np.ndarray):
            values[name] = value
            continue
        array = np.ascontiguousarray(browser_type(value))
        arrays[name] = [array.dtype.str, list(array.shape), offset]
        raw = array.tobytes()
        parts.append(raw + bytes(-len(raw) % ALIGN))
        offset += len(parts[-1])
    head = msgspec.json.encode({"values": values, "arrays": arrays})
    head += b" " * (-(4 + len(head)) % ALIGN)
    return b"".join([len(head).to_bytes(4, "little"), head, *parts])


def unpack(data: bytes) -> dict[str, Any]:
    """The frame of `pack`, arrays as read-only views of `data`."""
    length = int.from_bytes(data[:4], "little")
    head = msgspec.json.decode(data[4 : 4 + length])
    frame = dict(head["values"])
    for name, (kind, shape, offset) in head["arrays"].items():
        count = int(np.prod(shape))
        frame[name] = np.frombuffer(data, kind, count, 4 + length + offset).reshape(shape)
    return frame


def body(data: bytes) -> int:
    """Where the arrays start: the bytes before are the length and the header."""
    return 4 + int.from_bytes(data[:4], "little")
