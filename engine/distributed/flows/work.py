"""What is to be done as a graph: tasks that take time, messages that share channels, and what each
waits for.

Built task by task; `played` gives when each begins and ends and, where it is asked for, how much of
each channel is used from when on. A message takes its way's latency first and then its share of
every channel it holds, fair among all that are in flight (max-min).
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from engine.core.errors import BadInput
from engine.distributed.flows.fluid import play
from engine.distributed.flows.graph import Graph
from engine.hardware.topology import Topology, Way

NO_WAY = -1


@dataclass(frozen=True)
class Played:
    """`start`, `stop` [tasks]: seconds. `uses` [changes, 3]: from when on (seconds), which channel,
    bytes per second of it."""

    start: np.ndarray
    stop: np.ndarray
    uses: np.ndarray

    @property
    def end(self) -> float:
        return float(self.stop.max(initial=0.0))


class Work:
    """Tasks are numbered in the order in which they are added."""

    def __init__(self, topology: Topology) -> None:
        self.topology = topology
        self.seconds: list[float] = []
        self.size: list[float] = []
        self.way: list[int] = []
        self.ways: list[Way] = []
        self._way_of: dict[tuple[int, int], int] = {}
        self._before: list[int] = []
        self._after: list[int] = []

    def __len__(self) -> int:
        return len(self.seconds)

    def compute(self, seconds: float, after: Iterable[int] = ()) -> int:
        """A task that takes so long, once all of `after` are over; its number."""
        return self._add(seconds, 0.0, NO_WAY, after)

    def send(self, source: int, target: int, size: float, after: Iterable[int] = ()) -> int:
        """A message of `size` bytes from one rank to another; its number."""
        way = self._way(source, target)
        if way == NO_WAY or size <= 0:
            return self._add(0.0, 0.0, NO_WAY, after)
        return self._add(self.ways[way].latency, size, way, after)

    def sends(
        self, sources: Sequence[int], targets: Sequence[int], size: float, after: Sequence[int],
        flowing: bool = False,
    ) -> list[int]:  # fmt: skip
        """A message of `size` bytes from each rank to the one beside it; their numbers. `flowing`:
        without the ways' latency, as many messages one after another that overlap it."""
        pairs = zip(sources, targets, strict=True)
        ways = [self._way(*pair) if size > 0 else NO_WAY for pair in pairs]
        numbers = list(range(len(self), len(self) + len(ways)))
        late = [way != NO_WAY and not flowing for way in ways]
        self.seconds += [
            self.ways[way].latency if there else 0.0 for way, there in zip(ways, late, strict=True)
        ]
        self.size += [size if way != NO_WAY else 0.0 for way in ways]
        self.way += ways
        for each in after:
            self._before += [each] * len(numbers)
            self._after += numbers
        return numbers

    def _way(self, source: int, target: int) -> int:
        way = self._way_of.get((source, target))
        if way is None:
            found = self.topology.way(source, target)
            way = self._way_of[source, target] = len(self.ways) if found.channels else NO_WAY
            if found.channels:
                self.ways.append(found)
        return way

    def delay(self, task: int, seconds: float) -> None:
        """Let a task take so much longer."""
        self.seconds[task] += seconds

    def wait(self, task: int, *after: int) -> None:
        """Let a task wait for others, too."""
        for each in after:
            self._before.append(each)
            self._after.append(task)

    def join(self, after: Iterable[int]) -> int:
        """A moment: when all of `after` are over."""
        return self.compute(0.0, after)

    def graph(self) -> Graph:
        """The same as arrays."""
        order = np.argsort(np.array(self._before, np.int64), kind="stable")
        after = np.array(self._after, np.int64)
        counts = np.bincount(np.array(self._before, np.int64), minlength=len(self))
        hops = [len(way.channels) for way in self.ways]
        held = [channel for way in self.ways for channel in way.channels]
        return Graph(
            np.array(self.seconds, np.float64),
            np.array(self.size, np.float64),
            np.array(self.way, np.int64),
            np.concatenate([[0], np.cumsum(hops)]).astype(np.int64),
            np.array(held, np.int64),
            capacity(self.topology),
            np.bincount(after, minlength=len(self)).astype(np.int64),
            np.concatenate([[0], np.cumsum(counts)]).astype(np.int64),
            after[order],
        )

    def played(self, uses: bool = False) -> Played:
        """When everything happens. Raises BadInput where tasks wait for one another in a circle."""
        start, stop, told = play(self.graph(), uses)
        stuck = int(np.isnan(stop).sum())
        if stuck:
            raise BadInput(f"work: {stuck} of {len(self)} tasks wait for one another in a circle")
        return Played(start, stop, told)

    def carried(self) -> np.ndarray:
        """[channels]: bytes that pass each in all."""
        found, ways = np.zeros(len(self.topology.channels)), np.array(self.way, np.int64)
        sizes = np.array(self.size)[ways != NO_WAY]
        by_way = np.bincount(ways[ways != NO_WAY], sizes, minlength=len(self.ways))
        for way, size in zip(self.ways, by_way.tolist(), strict=True):
            found[list(way.channels)] += size
        return found

    def _add(self, seconds: float, size: float, way: int, after: Iterable[int]) -> int:
        number = len(self.seconds)
        self.seconds.append(seconds)
        self.size.append(size)
        self.way.append(way)
        self.wait(number, *after)
        return number


def together(topology: Topology, sources: np.ndarray, targets: np.ndarray, size: float) -> float:
    """Seconds until messages of `size` bytes that all begin at once have arrived."""
    count, ways = len(sources), topology.ways(sources, targets)
    goes = (np.diff(ways.first) > 0) & (size > 0)
    nothing = np.zeros(count, np.int64)
    graph = Graph(
        np.where(goes, ways.latency, 0.0), np.where(goes, size, 0.0),
        np.where(goes, np.arange(count), NO_WAY), ways.first, ways.held, capacity(topology),
        nothing, np.zeros(count + 1, np.int64), np.zeros(0, np.int64),
    )  # fmt: skip
    return float(play(graph)[1].max(initial=0.0))


def capacity(topology: Topology) -> np.ndarray:
    """[channels]: bytes per second."""
    return np.array([channel.bandwidth for channel in topology.channels], np.float64)
