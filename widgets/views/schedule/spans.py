"""`SpanTable`: a run's spans as columns; names, tags and tasks numbered once, busy time kept."""

from array import array
from typing import Self

import numpy as np

from engine.core import tags
from engine.core.events import Span
from engine.core.spans import Spans, union
from widgets.views.schedule.busy import Busy
from widgets.views.schedule.lanes import in_order

IDLE = ("idle", "bubble", "wait")  # kinds of span that keep nobody busy
RESTS = (*IDLE, "receive")  # and a rank that only awaits a message, though its row says for what
COLUMNS = {
    "lane": "i", "kind": "i", "tag": "i", "start": "d", "stop": "d", "flops": "d", "bytes": "d",
}  # fmt: skip


class SpanTable:
    """Spans in order of arrival. A layer is 0 for measured spans, 1 for modelled ones."""

    def __init__(self) -> None:
        self.chosen: list[str] | None = None  # the only lanes to show, in their order
        self.used = False  # of those the ones with spans alone
        self.lanes: dict[str, int] = {}
        self.kinds: dict[str, int] = {}
        self.tags: dict[str, int] = {}
        self.tasks: dict[str, int] = {}
        self.of_tag: list[tuple[int, int]] = []  # a tag's task (-1: none) and its layer
        self.columns = {name: array(kind) for name, kind in COLUMNS.items()}
        self.busy: dict[tuple[int, int], Busy] = {}  # lane and layer
        self.ends = [[np.inf, -np.inf], [np.inf, -np.inf]]  # of each layer, seconds

    def choose(self, lanes: list[str], used: bool = False) -> None:
        """Keep spans of these lanes alone; `used`: a lane without any is none."""
        self.chosen, self.used = lanes, used
        self.lanes = {} if used else {lane: place for place, lane in enumerate(lanes)}

    def lane(self, name: str) -> int:
        """The number of a lane; -1 for one that is not to be shown."""
        lane = self.lanes.get(name, -1)
        if lane < 0 and (self.chosen is None or self.used and name in self.chosen):
            lane = self.lanes[name] = len(self.lanes)
        return lane

    def order(self) -> list[int]:
        """The lanes' numbers in the order to show them."""
        if self.chosen is None or not self.used:
            return in_order(self.lanes, self.chosen is not None)
        return [self.lanes[name] for name in self.chosen if name in self.lanes]

    def add(self, span: Span) -> None:
        """Append one span."""
        lane = self.lane(span.lane)
        if lane < 0:
            return
        kind, tag = self._kind(span.name), self.tag(span.tag)
        start, stop = span.start, span.time
        values = (lane, kind, tag, start, stop, span.flops, span.bytes)
        for column, value in zip(self.columns.values(), values, strict=True):
            column.append(value)
        layer = self.of_tag[tag][1]
        ends = self.ends[layer]
        if start < ends[0]:
            ends[0] = start
        if stop > ends[1]:
            ends[1] = stop
        if span.name not in RESTS:
            busy = self.busy.get((lane, layer))
            if busy is None:
                busy = self.busy[lane, layer] = Busy()
            busy.add(start, stop)

    def extend(self, spans: Spans) -> None:
        """Append spans that arrive as columns, a whole trace at once."""
        lane = _numbers([self.lane(name) for name in spans.lanes], spans.lane)
        kind = _numbers([self._kind(name) for name in spans.names], spans.name)
        tag = _numbers([self.tag(text) for text in spans.tags], spans.tag)
        shown = lane >= 0
        columns = {"lane": lane, "kind": kind, "tag": tag, "start": spans.start, "stop": spans.stop}
        columns |= {"flops": spans.flops, "bytes": spans.bytes}
        for name, column in self.columns.items():
            column.frombytes(columns[name][shown].astype(column.typecode).tobytes())
        layer = np.array([modelled for _, modelled in self.of_tag], np.int32)[tag]
        resting = np.array([name in RESTS for name in self.kinds], bool)[kind]
        for place in np.unique(layer[shown]).tolist():
            mine = shown & (layer == place)
            ends = self.ends[place]
            ends[0] = min(ends[0], float(spans.start[mine].min()))
            ends[1] = max(ends[1], float(spans.stop[mine].max()))
            for one in np.unique(lane[mine & ~resting]).tolist():
                own = mine & ~resting & (lane == one)
                busy = self.busy.setdefault((one, place), Busy())
                starts, stops = union(spans.start[own], spans.stop[own])
                for start, stop in zip(starts.tolist(), stops.tolist(), strict=True):
                    busy.add(start, stop)

    def copy(self) -> Self:
        other: Self = object.__new__(type(self))
        other.__dict__.update(self.__dict__)
        for name in ("lanes", "kinds", "tags", "tasks", "of_tag"):
            setattr(other, name, getattr(self, name).copy())
        other.columns = {name: column[:] for name, column in self.columns.items()}
        other.busy = {key: busy.copy() for key, busy in self.busy.items()}
        other.ends = [list(ends) for ends in self.ends]
        return other

    def _kind(self, name: str) -> int:
        return self.kinds.setdefault(name, len(self.kinds))

    def tag(self, tag: str) -> int:
        """The number of a tag, read the first time."""
        if tag in self.tags:
            return self.tags[tag]
        place = self.tags[tag] = len(self.tags)
        facts = tags.facts(tag)
        key = next((key for key in ("mb", "task") if key in facts), "")
        # Bare numbers are named by what they number; a name (a request's, say) is one everywhere.
        task = f"{key} {facts[key]}" if key and facts[key].isdigit() else facts.get(key, "")
        task_number = self.tasks.setdefault(task, len(self.tasks)) if task else -1
        self.of_tag.append((task_number, int(facts.get("grade") == "modelled")))
        return place


def _numbers(of: list[int], places: np.ndarray) -> np.ndarray:
    return np.array(of or [-1], np.int32)[places]
