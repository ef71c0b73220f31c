"""Columns that only grow: what a fold keeps of a long run, cheap to append to, view and copy."""

from collections.abc import Iterable
from typing import Any, Self

import numpy as np

FIRST = 256  # rows a new buffer has room for
WAITING = 2048  # appended rows that wait at most: to write many at once costs a tenth


class Buffer:
    """Arrays of one length, of which the first `filled` rows belong to somebody."""

    def __init__(self, types: dict[str, str], room: int) -> None:
        self.arrays = {name: np.zeros(room, kind) for name, kind in types.items()}
        self.room, self.filled = room, 0


class Columns:
    """Named numpy columns with `append`. A copy shares the buffer until one of the two grows it
    differently, so that keeping many states of a long fold costs nothing."""

    def __init__(self, **types: str) -> None:
        self.types, self.count = types, 0  # rows written
        self._waiting: list[tuple[Any, ...]] = []  # rows appended since
        self._buffer = Buffer(types, FIRST)

    def __len__(self) -> int:
        return self.count + len(self._waiting)

    def __getitem__(self, name: str) -> np.ndarray:
        """The column so far, as a view."""
        self._write()
        return self._buffer.arrays[name][: self.count]

    def append(self, *values: Any) -> None:
        """One more row, values in the order of the columns."""
        self._waiting.append(values)
        if len(self._waiting) >= WAITING:
            self._write()

    def extend(self, *arrays: np.ndarray) -> None:
        """Rows at once."""
        self._write()
        self._add(len(arrays[0]), arrays)

    def _write(self) -> None:
        if self._waiting:
            rows, self._waiting = self._waiting, []
            self._add(len(rows), zip(*rows, strict=True))

    def _add(self, more: int, columns: Iterable[Any]) -> None:
        self._reserve(more)
        for array, values in zip(self._buffer.arrays.values(), columns, strict=True):
            array[self.count : self.count + more] = values
        self.count += more
        self._buffer.filled = self.count

    def _reserve(self, rows: int) -> None:
        """Make the next `rows` writable: a new buffer where this one is full or another's."""
        buffer, need = self._buffer, self.count + rows
        if need <= buffer.room and buffer.filled == self.count:
            return
        room = max(FIRST, need, 2 * self.count)
        self._buffer = Buffer(self.types, room)
        for name, array in buffer.arrays.items():
            self._buffer.arrays[name][: self.count] = array[: self.count]

    def copy(self) -> Self:
        self._write()
        other: Any = object.__new__(type(self))
        other.__dict__.update(self.__dict__)
        other._waiting = []
        return other
