"""Fold of `Span` events into lanes over time, with the memory each lane holds.

`mb=` or `task=` in a span's tag says which piece of work it belongs to, `grade=modelled` that its
time was not measured. `facts["lanes"]` of the header names the lanes to show, in order; without it
every lane is shown. `facts["lanes_of"]` "step": they are of a step's operations; those with spans
are shown, and the view opens where most goes on side by side. `Level` events named `memory/<kind>`
are bytes held; `facts["memory_limit"]` is how many there may be. A `Move` between two lanes stands
in a strip under each, in place of lanes named `link …`; those count in no figure of who is idle.
`facts["workers"]` says how many machines all lanes share, where lanes are jobs that take turns.
`facts["plan"]` is the schedule as text, a line for each lane; `Mark` events of the lane `plan` say
of it what a checker or a measure found. `facts["devices"]` has the category of each name in a
profiler's trace, and which lanes are an accelerator's (`engine.core.chrome`).
"""

import math
from array import array
from collections.abc import Iterable
from typing import Any, Self

import numpy as np

from engine.core import spans as bulk
from engine.core.chrome import launches
from engine.core.chrome.breakdown import Breakdown, breakdowns
from engine.core.chrome.category import CATEGORIES, HOST
from engine.core.chrome.device_trace import devices_of, launched
from engine.core.chrome.gaps import CAUSES, Gaps, gaps
from engine.core.events import AnyEvent, Blob, Level, Mark, Move, Opened, Span
from widgets.canvas.fold import CanvasFold
from widgets.canvas.running import AT_END, Running, running
from widgets.theme import figure
from widgets.views.schedule.bubble import is_bubble, with_bubble
from widgets.views.schedule.gap_words import gap_words
from widgets.views.schedule.lanes import is_link, number
from widgets.views.schedule.messages import Messages
from widgets.views.schedule.side_by_side import side_by_side, step_figures
from widgets.views.schedule.spans import IDLE, SpanTable

QUESTION = "Where does the time of each lane go?"
EMPTY = "No work yet. Start a run, or open a recorded one: each worker gets a row here."
MEMORY = "memory/"
IDLE_OF_TOTAL = "idle of total"
PARTS = 400  # moments at which the idle share is known
PLAN = "plan"
LEVELS = {"lane": "i", "kind": "i", "time": "d", "value": "d"}


class Schedule(CanvasFold):
    """Spans and bytes held, in order of arrival."""

    question, empty = QUESTION, EMPTY
    own = ("spans", "messages", "memory_kinds", "said")

    def __init__(self) -> None:
        super().__init__()
        self.limit = 0.0  # bytes
        self.of_step = False  # lanes are of a step's operations
        self.plan = ""
        self.workers = 0  # that the lanes take turns on; 0: each lane is one
        self.facts: dict[str, Any] = {}  # of the header
        self.said: list[tuple[str, str]] = []  # of the plan: what about, sentence
        self.categories: dict[str, str] = {}  # of a trace's names
        self.devices: list[Breakdown] = []  # of a trace's accelerators
        self.device_lanes: set[str] = set()  # which stand above the host's
        self.traced: bulk.Spans | None = None  # a trace's spans, all that there are
        self.launched_by: np.ndarray | None = None  # of each of them
        self.gaps: Gaps | None = None  # of the streams
        self.spans, self.messages = SpanTable(), Messages()
        self.memory_kinds: dict[str, int] = {}
        self.levels = {name: array(kind) for name, kind in LEVELS.items()}

    def take(self, event: AnyEvent) -> None:
        if type(event) is Span:
            self.spans.add(event)
        elif type(event) is Move:
            self.messages.take(event, self.spans.tag(event.tag))
        elif type(event) is Blob and event.name == bulk.NAME:
            self._extend(bulk.Spans.told(event, self.blobs, self.facts))
        elif type(event) is Blob and event.name == launches.NAME and self.traced is not None:
            self.launched_by = launched(event, self.blobs, len(self.traced))
            self._wait()
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
            self.of_step = event.facts.get("lanes_of") == "step"
            self.spans.choose([str(lane) for lane in lanes], used=self.of_step)
        self.plan = str(event.facts.get(PLAN, ""))
        workers = event.facts.get("workers")
        self.workers = max(0, workers) if isinstance(workers, int) else 0
        limit = event.facts.get("memory_limit")
        self.limit = float(limit) if isinstance(limit, int | float) else 0.0

    def _extend(self, spans: bulk.Spans) -> None:
        """Spans of a trace; what its devices did is counted once, here."""
        self.spans.extend(spans)
        categories, lanes = devices_of(self.facts, spans)
        if categories:
            self.traced = spans
            self.categories = dict(zip(spans.names, categories, strict=True))
            self.devices = breakdowns(spans, categories, lanes)
            worked = zip(spans.lanes, lanes, strict=True)
            self.device_lanes = {lane for lane, device in worked if device}

    def _wait(self) -> None:
        """What the streams of a trace waited for, once their launches are known."""
        spans, by = self.traced, self.launched_by
        if spans is not None and by is not None and self.devices:
            self.gaps = gaps(spans, *devices_of(self.facts, spans), by)

    def _level(self, event: Level) -> None:
        lane = self.spans.lane(event.lane)
        if lane >= 0:
            name = event.name[len(MEMORY) :]
            kind = self.memory_kinds.setdefault(name, len(self.memory_kinds))
            values = (lane, kind, event.time, event.value)
            for column, value in zip(self.levels.values(), values, strict=True):
                column.append(value)

    def copy(self) -> Self:
        other = super().copy()
        other.levels = {name: column[:] for name, column in self.levels.items()}
        return other

    def draw(self) -> dict[str, Any]:
        """The whole history so far."""
        table, ends = self.spans, self.spans.ends
        order = table.order()
        if self.device_lanes:
            called = list(table.lanes)
            order.sort(key=lambda lane: called[lane] not in self.device_lanes)
        names, spans = list(table.lanes), {k: np.array(v) for k, v in table.columns.items()}
        levels = {k: np.array(v) for k, v in self.levels.items()}
        of_tag = np.array(table.of_tag, np.int32).reshape(-1, 2)
        workers = [lane for lane in order if not is_link(names[lane])]
        moves = self.messages.frame({names[lane]: n for n, lane in enumerate(workers)}, of_tag)
        if moves and len(workers) < len(order):  # what links carry is told under their ends
            order = workers
        row = np.full(len(names), -1, np.int32)
        row[order] = np.arange(len(order), dtype=np.int32)
        if len(order) < len(names):
            spans, levels = (
                {k: v[row[of["lane"]] >= 0] for k, v in of.items()} for of in (spans, levels)
            )
        modelled = self.clock == "virtual" or bool(len(of_tag) and of_tag[:, 1].all())
        return {
            "any": bool(len(spans["lane"])),
            "modelled": modelled,
            "lanes": len(order),
            "turns": self.workers > 0,
            "names": [names[lane] for lane in order],
            "kinds": list(table.kinds),
            "idle": [int(kind in IDLE) for kind in table.kinds],
            **self._groups(table.kinds),
            "tasks": list(table.tasks),
            "task_number": np.array([number(task) for task in table.tasks], np.int32),
            "tags": list(table.tags),
            "span_row": row[spans["lane"]] if len(order) else spans["lane"],
            **{f"span_{k}": v for k, v in spans.items() if k != "lane"},
            "span_task": of_tag[spans["tag"], 0],
            "span_layer": of_tag[spans["tag"], 1].astype(np.uint8),
            **self._launches(row),
            **moves,
            "memory_kinds": list(self.memory_kinds),
            "memory_limit": self.limit,
            "level_row": row[levels["lane"]] if len(order) else levels["lane"],
            **{f"level_{k}": v for k, v in levels.items() if k != "lane"},
            "plan": "; ".join(self.plan.splitlines()),
            "said": [list(p) for p in (*self.said, *gap_words(self.gaps)) if not is_bubble(*p)],
            "begin": min(ends[0][0], ends[1][0], self.now),
            "finish": max(ends[0][1], ends[1][1], 0.0),
            "close": side_by_side(spans["start"], spans["stop"]) if self.of_step else None,
            **self._figures(names),
        }

    def _launches(self, row: np.ndarray) -> dict[str, Any]:
        """Of a trace: the row and the start of the call that started each span, and the gaps of
        the streams."""
        spans, by, found = self.traced, self.launched_by, self.gaps
        if (
            spans is None
            or by is None
            or found is None
            or len(by) != len(self.spans.columns["lane"])
        ):
            return {}
        lane = np.array(list(map(self.spans.lanes.__getitem__, spans.lanes)) or [-1], np.int32)
        return {
            "span_from_row": np.where(by >= 0, row[lane[spans.lane[by]]], -1).astype(np.int32),
            "span_from_time": np.where(by >= 0, spans.start[by], 0.0),
            "causes": list(CAUSES),
            "gap_row": row[lane[found.lane]],
            "gap_start": found.start, "gap_stop": found.stop, "gap_cause": found.cause,
        }  # fmt: skip

    def _groups(self, kinds: Iterable[str]) -> dict[str, Any]:
        """Of a trace: the categories there are, and each kind's place among them."""
        if not self.categories:
            return {"groups": []}
        of = [self.categories.get(kind, HOST) for kind in kinds]
        groups = [name for name in CATEGORIES if name in of]
        places = [groups.index(name if name in groups else HOST) for name in of]
        return {"groups": groups, "kind_group": np.array(places, np.uint8)}

    def _device_figures(self) -> list[list[str]]:
        """What a trace's accelerators did with their time, all of them together."""
        window = sum(device.window for device in self.devices)

        def share(seconds: float) -> str:
            return figure(seconds / window if window else math.nan, "%")

        spoke = sum(device.communication for device in self.devices)
        hidden = sum(device.overlapped for device in self.devices)
        count = len(self.devices)
        return [
            [self.devices[0].device if count == 1 else f"{count} devices",
             figure(max(device.window for device in self.devices), "s")],
            ["computing", share(sum(device.compute for device in self.devices))],
            ["only communicating", share(spoke - hidden)],
            ["idle", share(sum(device.idle for device in self.devices))],
        ]  # fmt: skip

    def _figures(self, names: list[str]) -> dict[str, Any]:
        """The figures of the whole, and the columns of the idle share at each moment."""
        told = self._whole(names)
        place = next((i for i, (label, _) in enumerate(told) if label == IDLE_OF_TOTAL), None)
        layer = next((layer for layer in (0, 1) if self._spent(layer, names)), 0)
        if place is None:
            return {"figures": told}
        bubbles = [pair for pair in self.said if is_bubble(*pair)]
        if bubbles:
            told, found, meant = with_bubble(told, self.spans, bubbles)
            return {"figures": told, "meant": meant, **running(found)}
        begin, end = self.spans.ends[layer]
        times = np.linspace(float(begin), float(end), PARTS)[1:]
        workers = [i for i, name in enumerate(names) if not is_link(name)]
        lanes = workers or list(range(len(names)))
        known = [self.spans.busy[i, layer] for i in lanes if (i, layer) in self.spans.busy]
        worked = sum((busy.before(times) for busy in known), np.zeros(len(times)))
        count = self.workers or len(lanes)
        shares = 1 - worked / np.maximum((times - float(begin)) * count, 1e-300)
        shares = np.clip(np.round(shares, 12), 0.0, 1.0)
        return {
            "figures": told,
            **running({place: Running(times, shares, "%", AT_END, empty=True)}),
        }

    def _whole(self, names: list[str]) -> list[list[str]]:
        """Of what was measured and, in two of them, of the clock beside it; of what was modelled
        where nothing was measured."""
        if self.devices:
            return self._device_figures()
        layers = [layer for layer in (0, 1) if self._spent(layer, names)]
        if not layers:
            return []
        if self.of_step:
            own = {i: each for (i, layer), each in self.spans.busy.items() if layer == layers[0]}
            return step_figures(own, names)
        makespan, of_total = self._idle(layers[0], names)
        found = [["makespan", makespan], [IDLE_OF_TOTAL, of_total]]
        if self.workers:
            return found
        if len(layers) > 1:
            makespan, of_total = self._idle(1, names)
            return [*found, ["modelled makespan", makespan], ["modelled idle of total", of_total]]
        spent = self._spent(layers[0], names)
        longest = max(spent, key=lambda lane: spent[lane])
        busiest = [f"busiest: {names[longest]}", figure(spent[longest], "s")]
        return [*found, busiest]

    def _spent(self, layer: int, names: list[str]) -> dict[int, float]:
        """Seconds that each lane worked; links only where there is nothing else."""
        begin, end = self.spans.ends[layer]
        found = {lane: busy.total for (lane, of), busy in self.spans.busy.items() if of == layer}
        workers = {lane: spent for lane, spent in found.items() if not is_link(names[lane])}
        return (workers or found) if end > begin else {}

    def _idle(self, layer: int, names: list[str]) -> tuple[str, str]:
        """(makespan, idle share of the total time) over the lanes that work."""
        spent, (begin, end) = self._spent(layer, names), self.spans.ends[layer]
        worked = sum(spent.values())
        lanes = self.workers or sum(not is_link(name) for name in names) or len(names)
        whole = float(end - begin) * lanes
        idle = whole - worked if abs(whole - worked) > 1e-9 * whole else 0.0  # else rounding
        return figure(float(end - begin), "s"), figure(idle / whole, "%")
