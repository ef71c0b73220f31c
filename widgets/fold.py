"""Folds: a view's state, built from a run's events and nothing else, at any moment of the run."""

import copy
from abc import ABC, abstractmethod
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, ClassVar, Self

import numpy as np

from engine.core.events import AnyEvent
from engine.core.log import Log

KEEP_EVERY = 4096  # events between kept states, at first: what a scrub back has to fold again
KEEP_MOST = 48  # kept states


class Fold(ABC):
    """State built from events one at a time. Pure: no drawing, no browser, no clock.

    `frame` gives plain numbers, strings, lists and numpy arrays, all that the drawing needs.
    `blobs` are the arrays that `Blob` events name; `History` lends the log's. `totals`: labels of
    the frame's figures that only count up, so that the end's are those of the whole run. `peaks`:
    those whose label goes on with ", … at most" where the most so far was more than is now.
    """

    totals: ClassVar[tuple[str, ...]] = ()
    peaks: ClassVar[tuple[str, ...]] = ()

    blobs: Mapping[str, np.ndarray] = MappingProxyType({})

    @abstractmethod
    def add(self, event: AnyEvent) -> None:
        """Take the next event of the log."""

    @abstractmethod
    def frame(self) -> dict[str, Any]:
        """What to draw now."""

    def copy(self) -> Self:
        """An independent state; override where a deep copy is needlessly slow."""
        return copy.deepcopy(self, {id(self.blobs): self.blobs})


def nothing(empty: str, opened: bool, closed: bool) -> str:
    """What a view without marks says: `empty` before any run, then that it waits, at last that the
    run has none. `empty` begins with a sentence like "No pages yet."."""
    first = empty.partition(".")[0]
    if closed:
        return f"{first.removesuffix(' yet')} in this run."
    return f"{first}: the run goes on." if opened else empty


def beneath(frame: dict[str, Any], fold: Fold, end: Sequence[Sequence[str]]) -> dict[str, Any]:
    """`frame` of `fold`, with the run's totals and peaks of its `end` figures in its labels."""
    whole = {label: value for label, value in end if label in fold.totals}
    peaks = dict(_peak(*figure) for figure in end)
    figures = []
    for label, value in frame["figures"]:
        name = label.partition(",")[0]
        if name in fold.peaks and name in peaks:
            now = value.partition(" of ")[0]
            label = name if peaks[name] == now else f"{name}, {peaks[name]} at most"
        elif whole.get(label, value) != value:
            label = f"{label}, {whole[label]} in all"
        figures.append([label, value])
    return {**frame, "figures": figures}


def _peak(label: str, value: str) -> tuple[str, str]:
    """A figure's name and the most that it was: as its label has it, else what it is."""
    name, _, most = label.partition(", ")
    return name, most.removesuffix(" at most") or value.partition(" of ")[0]


class History:
    """A fold of `log` at any moment: forward by folding on, backwards from kept states."""

    def __init__(self, log: Log, start: Fold) -> None:
        self.log = log
        start.blobs = log.blobs
        self.cursor = 0  # events folded so far
        self.state = start
        self._every = KEEP_EVERY
        self._kept: list[tuple[int, Fold]] = [(0, start.copy())]

    def latest(self) -> Fold:
        """The state after every event so far."""
        return self._advance(len(self.log))

    def at(self, time: float) -> Fold:
        """The state after every event up to and including `time` (seconds)."""
        return self._advance(bisect_right(self.log.events, time, key=lambda event: event.time))

    def _advance(self, target: int) -> Fold:
        at, kept = self._kept[bisect_right(self._kept, target, key=lambda kept: kept[0]) - 1]
        if target < self.cursor or at > self.cursor:
            self.cursor, self.state = at, kept.copy()
        while self.cursor < target:
            last = self._kept[-1][0]
            stop = min(target, max(self.cursor, last) + self._every)
            for event in self.log.events[self.cursor : stop]:
                self.state.add(event)
            self.cursor = stop
            if stop - last >= self._every:
                self._keep(stop)
        return self.state

    def _keep(self, position: int) -> None:
        self._kept.append((position, self.state.copy()))
        if len(self._kept) > KEEP_MOST:
            # Half as many, twice as far apart: memory stays bounded however long the log.
            self._kept, self._every = self._kept[::2], 2 * self._every
