"""Fold of `Span` events into lanes over time, with the memory each lane holds.

`mb=` or `task=` in a span's tag says which piece of work it belongs to, `grade=modelled` that its
time was not measured. `facts["lanes"]` of the header names the lanes to show, in order; without it
every lane is shown. `Level` events named `memory/<kind>` are bytes held; `facts["memory_limit"]` is
how many there may be. Lanes named `link …` are links: they count in no figure of who is idle.
`facts["plan"]` is the schedule as text, a line for each lane; `Mark` events
of the lane `plan` say of it what a checker or a measure found.
"""

from array import array
from typing import Any, Self

import numpy as np

from engine.core import spans as bulk
from engine.core import tags
from engine.core.events import AnyEvent, Blob, Level, Mark, Opened, Span
from widgets.canvas.fold import CanvasFold
from widgets.theme import figure
from widgets.views.schedule import many
from widgets.views.schedule.busy import Busy
from widgets.views.schedule.lanes import in_order, is_link, number

QUESTION = "Where does the time of each lane go?"
EMPTY = "No work yet. Start a run, or open a recorded one: each worker gets a row here."
IDLE = ("idle", "bubble", "wait")
MEMORY = "memory/"
PLAN = "plan"
COLUMNS = {
    "lane": "i", "kind": "i", "tag": "i", "start": "d", "stop": "d", "flops": "d", "bytes": "d",
}  # fmt: skip
LEVELS = {"lane": "i", "kind": "i", "time": "d", "value": "d"}


class Schedule(CanvasFold):
    """Spans in order of arrival as columns; names, tags and tasks are numbered once."""

    question, empty = QUESTION, EMPTY
    own = ("lanes", "kinds", "memory_kinds", "tags", "tasks", "of_tag", "said")

    def __init__(self) -> None:
        super().__init__()
        self.limit = 0.0  # bytes
        self.chosen: list[str] | None = None  # the lanes the header names
        self.plan = ""
        self.facts: dict[str, Any] = {}  # of the header
        self.said: list[tuple[str, str]] = []  # of the plan: what about, sentence
        self.lanes: dict[str, int] = {}
        self.kinds: dict[str, int] = {}
        self.memory_kinds: dict[str, int] = {}
        self.tags: dict[str, int] = {}
        self.tasks: dict[str, int] = {}
        self.of_tag: list[tuple[int, int]] = []  # a tag's task (-1: none), whether it is modelled
        self.spans = {name: array(kind) for name, kind in COLUMNS.items()}
        self.levels = {name: array(kind) for name, kind in LEVELS.items()}
        self.busy: dict[tuple[int, int], Busy] = {}  # lane and layer (1: modelled)
        self.ends = [[np.inf, -np.inf], [np.inf, -np.inf]]  # of each layer, seconds

    def take(self, event: AnyEvent) -> None:
        if type(event) is Span:
            self._span(event)
        elif type(event) is Blob and event.name == bulk.NAME:
            many.take(self, bulk.Spans.told(event, self.blobs, self.facts), IDLE)
        elif type(event) is Level and event.name.startswith(MEMORY):
            self._level(event)
        elif type(event) is Opened:
            self._open(event)
        elif type(event) is Mark and event.lane == PLAN:
            self.said.append((event.name, event.text))

    def _open(self, event: Opened) -> None:
        self.facts = event.facts
        lanes = event.facts.get("lanes")
        if isinstance(lanes, list):
            self.chosen = [str(lane) for lane in lanes]
            self.lanes = {lane: place for place, lane in enumerate(self.chosen)}
        self.plan = str(event.facts.get(PLAN, ""))
        limit = event.facts.get("memory_limit")
        self.limit = float(limit) if isinstance(limit, int | float) else 0.0

    def lane(self, name: str) -> int:
        """The number of a lane; -1 for one that is not to be shown."""
        lane = self.lanes.get(name, -1)
        if lane < 0 and self.chosen is None:
            lane = self.lanes[name] = len(self.lanes)
        return lane

    def kind(self, name: str) -> int:
        """The number of a span's name."""
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

    def _span(self, event: Span) -> None:
        lane = self.lane(event.lane)
        if lane < 0:
            return
        kind, tag = self.kind(event.name), self.tag(event.tag)
        start, stop = event.start, event.time
        values = (lane, kind, tag, start, stop, event.flops, event.bytes)
        for column, value in zip(self.spans.values(), values, strict=True):
            column.append(value)
        layer = self.of_tag[tag][1]
        ends = self.ends[layer]
        if start < ends[0]:
            ends[0] = start
        if stop > ends[1]:
            ends[1] = stop
        if event.name not in IDLE:
            busy = self.busy.get((lane, layer))
            if busy is None:
                busy = self.busy[lane, layer] = Busy()
            busy.add(start, stop)

    def _level(self, event: Level) -> None:
        lane = self.lane(event.lane)
        if lane >= 0:
            name = event.name[len(MEMORY) :]
            kind = self.memory_kinds.setdefault(name, len(self.memory_kinds))
            values = (lane, kind, event.time, event.value)
            for column, value in zip(self.levels.values(), values, strict=True):
                column.append(value)

    def copy(self) -> Self:
        other = super().copy()
        other.spans = {name: column[:] for name, column in self.spans.items()}
        other.levels = {name: column[:] for name, column in self.levels.items()}
        other.busy = {key: busy.copy() for key, busy in self.busy.items()}
        other.ends = [list(ends) for ends in self.ends]
        return other

    def draw(self) -> dict[str, Any]:
        """The whole history so far."""
        order = in_order(self.lanes, self.chosen is not None)
        row = np.empty(len(order), np.int32)
        row[order] = np.arange(len(order), dtype=np.int32)
        names, spans = list(self.lanes), {k: np.array(v) for k, v in self.spans.items()}
        levels = {k: np.array(v) for k, v in self.levels.items()}
        of_tag = np.array(self.of_tag, np.int32).reshape(-1, 2)
        modelled = self.clock == "virtual" or bool(len(of_tag) and of_tag[:, 1].all())
        return {
            "any": bool(len(spans["lane"])),
            "modelled": modelled,
            "lanes": len(names),
            "names": [names[lane] for lane in order],
            "kinds": list(self.kinds),
            "idle": [int(kind in IDLE) for kind in self.kinds],
            "tasks": list(self.tasks),
            "task_number": np.array([number(task) for task in self.tasks], np.int32),
            "tags": list(self.tags),
            "span_row": row[spans["lane"]] if len(order) else spans["lane"],
            **{f"span_{k}": v for k, v in spans.items() if k != "lane"},
            "span_task": of_tag[spans["tag"], 0],
            "span_layer": of_tag[spans["tag"], 1].astype(np.uint8),
            "memory_kinds": list(self.memory_kinds),
            "memory_limit": self.limit,
            "level_row": row[levels["lane"]] if len(order) else levels["lane"],
            **{f"level_{k}": v for k, v in levels.items() if k != "lane"},
            "plan": "; ".join(self.plan.splitlines()),
            "said": [list(pair) for pair in self.said],
            "begin": min(self.ends[0][0], self.ends[1][0], self.now),
            "finish": max(self.ends[0][1], self.ends[1][1], 0.0),
            "figures": self._figures(names),
        }

    def _figures(self, names: list[str]) -> list[list[str]]:
        """Of what was measured and, in two of them, of the clock beside it; of what was modelled
        where nothing was measured."""
        layers = [layer for layer in (0, 1) if self._spent(layer, names)]
        if not layers:
            return []
        makespan, of_total, of_ideal = self._idle(layers[0], names)
        found = [["makespan", makespan], ["idle of total", of_total]]
        if len(layers) > 1:
            makespan, of_total, _ = self._idle(1, names)
            return [*found, ["modelled makespan", makespan], ["modelled idle of total", of_total]]
        spent = self._spent(layers[0], names)
        longest = max(spent, key=lambda lane: spent[lane])
        busiest = [f"busiest: {names[longest]}", figure(spent[longest], "s")]
        return [*found, ["idle of ideal", of_ideal], busiest]

    def _spent(self, layer: int, names: list[str]) -> dict[int, float]:
        """Seconds that each lane worked; links only where there is nothing else."""
        begin, end = self.ends[layer]
        found = {lane: busy.total for (lane, of), busy in self.busy.items() if of == layer}
        workers = {lane: spent for lane, spent in found.items() if not is_link(names[lane])}
        return (workers or found) if end > begin else {}

    def _idle(self, layer: int, names: list[str]) -> tuple[str, str, str]:
        """(makespan, idle share of the total time, of the ideal time) over the lanes that work."""
        spent, (begin, end) = self._spent(layer, names), self.ends[layer]
        worked = sum(spent.values())
        lanes = sum(not is_link(name) for name in names) or len(names)
        whole = float(end - begin) * lanes
        idle = whole - worked if abs(whole - worked) > 1e-9 * whole else 0.0  # else rounding
        shares = figure(idle / whole, "%"), figure(idle / worked if worked else float("nan"), "%")
        return figure(float(end - begin), "s"), *shares
