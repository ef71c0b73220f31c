"""Vectors on a backend: `c.assign(a + 3.0 * b)` is one pass over memory, whatever the backend.

Sums and products of vectors are not computed when written: they say what an assignment is to do.
"""

from dataclasses import dataclass

import numpy as np

from engine.core.errors import BadInput
from engine.kernels.experiments.stream.backend import Backend


@dataclass(frozen=True)
class Scaled:
    """factor · vector, not computed yet."""

    vector: "Vector"
    factor: float

    def __add__(self, other: "Vector | Scaled") -> "Sum":
        return Sum(self, other * 1.0)

    def __mul__(self, factor: float) -> "Scaled":
        return Scaled(self.vector, self.factor * factor)

    __rmul__ = __mul__


@dataclass(frozen=True)
class Sum:
    """One vector and another times a factor, not computed yet."""

    first: Scaled
    second: Scaled


class Vector:
    """`length` float64 numbers on `backend`."""

    def __init__(self, backend: Backend, values: np.ndarray) -> None:
        self.backend, self.length = backend, len(values)
        self.array = backend.place(values)

    def __add__(self, other: "Vector | Scaled") -> Sum:
        return Sum(self * 1.0, other * 1.0)

    def __mul__(self, factor: float) -> Scaled:
        return Scaled(self, float(factor))

    __rmul__ = __mul__

    def assign(self, what: "Vector | Scaled | Sum") -> None:
        """Compute `what` into this vector. Raises BadInput where lengths or backends differ."""
        if isinstance(what, Sum):
            first, second = what.first, what.second
            if first.factor != 1.0:
                first, second = second, first
            if first.factor != 1.0:
                raise BadInput("assign: of two terms one has to be a plain vector; scale it first")
            self._fits(first.vector, second.vector)
            self.backend.summed(self.array, first.vector.array, second.vector.array, second.factor)
        else:
            term = what * 1.0
            self._fits(term.vector)
            self.backend.scaled(self.array, term.vector.array, term.factor)

    def numbers(self) -> np.ndarray:
        """The values as numpy has them, once all work on them is done."""
        self.backend.ready()
        return self.backend.fetch(self.array)

    def _fits(self, *others: "Vector") -> None:
        for other in others:
            if other.length != self.length:
                raise BadInput(f"assign: lengths {other.length} and {self.length}; make them equal")
            if other.backend is not self.backend:
                names = f"{other.backend.name} and {self.backend.name}"
                raise BadInput(f"assign: backends {names}; keep vectors on one")
