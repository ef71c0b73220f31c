"""Heartbeats: when each rank last showed a sign of life and what it was doing, in memory that the
parent reads even when the rank is dead."""

import time
from dataclasses import dataclass
from multiprocessing.context import BaseContext
from typing import Any

WIDTH = 96  # bytes of a rank's line


@dataclass(frozen=True, slots=True)
class Heartbeats:
    """`lines`: a text a rank; `beats`: when each last showed a sign of life, in seconds of the
    machine's monotonic clock; `stop`: whether a person asked all to stop."""

    lines: Any  # ctypes arrays, as multiprocessing shares them
    beats: Any
    stop: Any


def heartbeats(context: BaseContext, ranks: int) -> Heartbeats:
    """An empty line for each rank, all alive now."""
    alive = context.RawArray("d", [time.monotonic()] * ranks)
    return Heartbeats(context.RawArray("c", WIDTH * ranks), alive, context.RawArray("b", 1))


def write(beats: Heartbeats, rank: int, text: str) -> None:
    """Replace the rank's line; a kill halfway leaves a line that still can be read."""
    data = text.encode("ascii", "replace")[: WIDTH - 1].ljust(WIDTH, b"\0")
    beats.lines[rank * WIDTH : (rank + 1) * WIDTH] = data


def read(beats: Heartbeats, rank: int) -> str:
    """The rank's line; "" before it has begun."""
    data: bytes = beats.lines[rank * WIDTH : (rank + 1) * WIDTH]
    return data.split(b"\0", 1)[0].decode("ascii", "replace")
