"""Fold of `Level` events: every quantity of a run over its time."""

from array import array
from typing import Any, Self

import numpy as np

from engine.core.events import AnyEvent, Closed, Level, Opened
from widgets.fold import Fold, nothing

SIGHT = "sees/"  # begins levels that say where a thread sees a block: an edge, not a quantity
EMPTY = "No levels yet. Start a run, or open one that has steps."


class LevelsFold(Fold):
    """Time and value of every level, by lane and name.

    Frame: `levels` {name: {lane: (time_N, value_N)}}, `facts` of the header, `clock`, `stop`
    (seconds: the latest event), `empty` (what to say where there are none).
    """

    def __init__(self) -> None:
        self.times: dict[tuple[str, str], array[float]] = {}
        self.values: dict[tuple[str, str], array[float]] = {}
        self.facts: dict[str, Any] = {}
        self.clock = "wall"
        self.opened = self.closed = False
        self.stop = 0.0

    def add(self, event: AnyEvent) -> None:
        self.stop = event.time
        if type(event) is Level:
            if event.name.startswith(SIGHT):
                return
            key = (event.name, event.lane)
            times = self.times.get(key)
            if times is None:
                times = self.times[key] = array("d")
                self.values[key] = array("d")
            times.append(event.time)
            self.values[key].append(event.value)
        elif type(event) is Opened:
            self.facts, self.clock, self.opened = event.facts, event.clock, True
        elif type(event) is Closed:
            self.closed = True

    def frame(self) -> dict[str, Any]:
        levels: dict[str, dict[str, tuple[np.ndarray, np.ndarray]]] = {}
        for (name, lane), times in self.times.items():
            pair = (np.array(times), np.array(self.values[name, lane]))
            levels.setdefault(name, {})[lane] = pair
        return {
            "levels": levels,
            "facts": self.facts,
            "clock": self.clock,
            "stop": self.stop,
            "empty": "" if levels else nothing(EMPTY, self.opened, self.closed),
        }

    def copy(self) -> Self:
        other = type(self)()
        other.times = {key: times[:] for key, times in self.times.items()}
        other.values = {key: values[:] for key, values in self.values.items()}
        other.facts, other.clock, other.stop = self.facts, self.clock, self.stop
        other.opened, other.closed = self.opened, self.closed
        return other
