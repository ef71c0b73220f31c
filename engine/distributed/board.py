"""What each rank is doing, in memory that the parent reads even when the rank is dead."""

from multiprocessing.context import BaseContext
from typing import Any, TypeAlias

WIDTH = 96  # bytes of a rank's line
Board: TypeAlias = Any  # ctypes array of chars, as multiprocessing shares it


def board(context: BaseContext, ranks: int) -> Board:
    """An empty line for each rank."""
    return context.RawArray("c", WIDTH * ranks)


def write(lines: Board, rank: int, text: str) -> None:
    """Replace the rank's line; a kill halfway leaves a line that still can be read."""
    data = text.encode("ascii", "replace")[: WIDTH - 1].ljust(WIDTH, b"\0")
    lines[rank * WIDTH : (rank + 1) * WIDTH] = data


def read(lines: Board, rank: int) -> str:
    """The rank's line; "" before it has begun."""
    data: bytes = lines[rank * WIDTH : (rank + 1) * WIDTH]
    return data.split(b"\0", 1)[0].decode("ascii", "replace")
