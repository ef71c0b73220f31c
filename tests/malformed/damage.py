"""Ways to damage a file: of its bytes, of a JSON value in it. All chance comes from `draw`."""

import copy
import random
from collections.abc import Callable, Iterator
from typing import Any

NASTY: tuple[Any, ...] = (
    None, True, False, 0, -1, 1, 2**31, 2**63, -(2**63), 2**64, 10**400, 1e308, -1e308, 0.5,
    float("nan"), float("inf"), float("-inf"), "", "x", "0", "-1", "1e999", "é\u2028\u0000",
    "\ud800", "../../../etc/passwd", "<script>alert(1)</script>", "x" * 5000, [], [[]], {},
    {"": {}}, [0] * 200, [None], {"type": "x"}, ["a", 1, None],
)  # fmt: skip


def truncated(data: bytes, draw: random.Random) -> bytes:
    return data[: draw.randrange(len(data))]


def flipped(data: bytes, draw: random.Random) -> bytes:
    """One to eight bits turned."""
    made = bytearray(data)
    for _ in range(draw.randint(1, 8)):
        made[draw.randrange(len(made))] ^= 1 << draw.randrange(8)
    return bytes(made)


def without(data: bytes, draw: random.Random) -> bytes:
    """A slice cut out."""
    start = draw.randrange(len(data))
    return data[:start] + data[start + draw.randint(1, 64) :]


def doubled(data: bytes, draw: random.Random) -> bytes:
    """A slice twice."""
    start = draw.randrange(len(data))
    stop = start + draw.randint(1, 200)
    return data[:stop] + data[start:stop] + data[stop:]


def noisy(data: bytes, draw: random.Random) -> bytes:
    """Random bytes in the middle."""
    start = draw.randrange(len(data))
    return data[:start] + draw.randbytes(draw.randint(1, 40)) + data[start:]


def overwritten(data: bytes, draw: random.Random) -> bytes:
    """A slice of zeros or of ones."""
    start, length = draw.randrange(len(data)), draw.randint(1, 32)
    return data[:start] + draw.choice((b"\0", b"\xff")) * length + data[start + length :]


BYTES: tuple[Callable[[bytes, random.Random], bytes], ...] = (
    truncated, flipped, without, doubled, noisy, overwritten,
)  # fmt: skip


def of_bytes(data: bytes, draw: random.Random) -> bytes:
    return draw.choice(BYTES)(data, draw)


def places(value: Any) -> list[tuple[Any, Any]]:
    """(container, key) of every value inside `value`."""
    found = []
    keys = value.keys() if isinstance(value, dict) else range(len(value))
    for key in keys:
        found.append((value, key))
        if isinstance(value[key], dict | list):
            found += places(value[key])
    return found


def too_large(value: Any) -> Iterator[Any]:
    """Copies with one of its numbers an integer that no float holds."""
    for place, (container, key) in enumerate(places(value)):
        if type(container[key]) in (int, float):
            made = copy.deepcopy(value)
            inner, its = places(made)[place]
            inner[its] = 10**400
            yield made


def of_value(value: Any, draw: random.Random) -> Any:
    """A copy with one to three of its values changed, taken away or moved."""
    made = copy.deepcopy(value)
    for _ in range(draw.randint(1, 3)):
        there = places(made)
        if not there:
            return copy.deepcopy(draw.choice(NASTY))
        container, key = draw.choice(there)
        what = draw.randrange(4)
        if what == 0 and isinstance(container, dict):
            del container[key]
        elif what == 1:
            other, its = draw.choice(there)
            if not isinstance(other[its], dict | list):
                container[key] = copy.deepcopy(other[its])
        else:
            container[key] = copy.deepcopy(draw.choice(NASTY))
    return made


def nested(depth: int, inside: str = "0") -> str:
    """JSON text of lists in lists."""
    return "[" * depth + inside + "]" * depth
