"""`Busy`: how long a lane was busy, the length of the union of its spans, kept while they
arrive."""

from array import array
from typing import Self

import numpy as np


class Busy:
    """Disjoint intervals of one lane. Spans come in order of their ends, as logs have them."""

    def __init__(self) -> None:
        self.starts, self.stops = array("d"), array("d")
        self.total = 0.0  # seconds

    def add(self, start: float, stop: float) -> None:
        """One more span, seconds; what overlaps is counted once."""
        starts, stops = self.starts, self.stops
        while stops and stops[-1] > start:
            begun, ended = starts.pop(), stops.pop()
            self.total -= ended - begun
            start, stop = min(start, begun), max(stop, ended)
        starts.append(start)
        stops.append(stop)
        self.total += stop - start

    def before(self, times: np.ndarray) -> np.ndarray:
        """Seconds busy before each of `times`."""
        starts, stops = np.array(self.starts), np.array(self.stops)
        whole = np.append(0.0, np.cumsum(stops - starts))
        place = np.searchsorted(starts, times, side="right")
        begun = np.maximum(place - 1, 0)
        over = np.where(place > 0, np.maximum(0.0, stops[begun] - times), 0.0)
        return whole[place] - over

    def copy(self) -> Self:
        other = type(self)()
        other.starts, other.stops, other.total = self.starts[:], self.stops[:], self.total
        return other
