"""Counts over time in columns that grow: what the level chart under the cells shows."""

from typing import Any, Self

import numpy as np

POINTS = 900  # more than this do not fit the chart's pixels


class Series:
    """Used, cached, free and host pages at rising times; a later count at one time replaces."""

    def __init__(self) -> None:
        self.count = 0
        self._times = np.zeros(256)
        self._counts = np.zeros((256, 4), np.int32)

    def add(self, time: float, used: int, cached: int, free: int, host: int) -> None:
        """These counts hold from `time` on."""
        if self.count and self._times[self.count - 1] == time:
            self.count -= 1
        if self.count == len(self._times):
            self._times = np.concatenate([self._times, np.zeros_like(self._times)])
            self._counts = np.concatenate([self._counts, np.zeros_like(self._counts)])
        self._times[self.count] = time
        self._counts[self.count] = used, cached, free, host
        self.count += 1

    def copy(self) -> Self:
        other: Any = object.__new__(type(self))
        other.count = self.count
        other._times, other._counts = self._times.copy(), self._counts.copy()
        return other

    def columns(self, time: float, latest: tuple[int, ...]) -> dict[str, np.ndarray]:
        """At most 900 points, in each stretch the one with most pages used, and the `latest`."""
        times, counts = self._times[: self.count], self._counts[: self.count]
        if self.count > POINTS:
            edges = np.linspace(0, self.count, POINTS, dtype=np.int64)
            picked = [
                a + int(counts[a:b, 0].argmax()) for a, b in zip(edges[:-1], edges[1:], strict=True)
            ]
            picked = np.unique([0, *picked])
            times, counts = times[picked], counts[picked]
        times, counts = np.append(times, time), np.vstack([counts, latest]).astype(np.int32)
        names = ("used", "cached", "free", "host")
        return {"time": times, **{name: counts[:, i].copy() for i, name in enumerate(names)}}
