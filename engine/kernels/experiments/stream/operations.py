"""STREAM's four operations (McCalpin 1995), written once for every backend, and what they move."""

from collections.abc import Callable
from dataclasses import dataclass

from engine.kernels.experiments.stream.vectors import Vector


def copy(a: Vector, b: Vector, c: Vector, factor: float) -> None:
    """c = a"""
    c.assign(a)


def scale(a: Vector, b: Vector, c: Vector, factor: float) -> None:
    """b = factor · c"""
    b.assign(factor * c)


def add(a: Vector, b: Vector, c: Vector, factor: float) -> None:
    """c = a + b"""
    c.assign(a + b)


def triad(a: Vector, b: Vector, c: Vector, factor: float) -> None:
    """a = b + factor · c"""
    a.assign(b + factor * c)


@dataclass(frozen=True)
class Operation:
    """`reads` and one write of float64 and `flops`, for each element."""

    run: Callable[[Vector, Vector, Vector, float], None]
    reads: int
    flops: int

    @property
    def name(self) -> str:
        return self.run.__name__

    @property
    def counted(self) -> int:
        """Bytes an element by STREAM's rule: what is read and what is written."""
        return 8 * (self.reads + 1)

    def moved(self, streams: bool) -> int:
        """Bytes an element that cross the memory's pins: a store through the caches first reads
        the line it writes (write-allocate); a streaming store does not."""
        return self.counted + (0 if streams else 8)


OPERATIONS = (
    Operation(copy, 1, 0),
    Operation(scale, 1, 1),
    Operation(add, 2, 1),
    Operation(triad, 2, 2),
)
