"""Fold of each request's life: when it waited, prefilled, decoded, lost its pages, and how it
ended.

In come a run's events; out goes one frame of columns with the whole history so far, with the
scheduler's steps above them; of a fleet's also where each request was sent, and when.
"""

from typing import Any

import numpy as np

from engine.core.events import AnyEvent, Branch, Move, Opened, Span, Token
from widgets.canvas.columns import Columns
from widgets.canvas.fold import LaneFold
from widgets.canvas.running import Running, counting, mean, running
from widgets.theme import figure

QUESTION = "What happened to each request, and when?"
EMPTY = "No requests yet. Start a run, or open a recorded one: each request gets a lane here."
CHUNKS = ("prefill", "unmask", "denoise")  # of positions in a row, by name of its span
STATES = ("queued", "running", "preempted", "swapped")
LOST = (STATES.index("preempted"), STATES.index("swapped"))
ENDS = ("finished", "aborted", "rejected", "pruned", "joined")


class RequestLanes(LaneFold):
    """Folds events into lanes."""

    question, empty = QUESTION, EMPTY
    own = (*LaneFold.own, "above", "open", "ends", "stretches", "chunks", "ticks", "steps",
           "sent", "places")  # fmt: skip

    def __init__(self) -> None:
        super().__init__()
        self.above: dict[int, int] = {}  # forked lane -> its parent's
        self.open: dict[int, tuple[int, float]] = {}  # lane -> its state now and since when
        self.ends: dict[int, tuple[float, int, str]] = {}  # lane -> when, how, why
        self.preempted, self.running = 0, 0
        self.stretches = Columns(lane="i4", state="u1", start="f8", stop="f8")
        self.chunks = Columns(lane="i4", start="f8", stop="f8", first="i4", last="i4", what="u1")
        self.ticks = Columns(lane="i4", time="f8")
        self.sent = Columns(lane="i4", start="f8", stop="f8", source="i4", target="i4", bytes="f8")
        self.fleet: dict[str, str] = {}  # replicas, each with its role where not all do the same
        self.places: dict[str, int] = {}  # whence and where requests were sent, by number
        self.steps = Columns(start="f8", stop="f8", decode="i4", prefill="i4", threads="i4")

    def take(self, event: AnyEvent) -> None:
        match event:
            case Token() if event.accepted:
                self.ticks.append(self.lane(event.thread), event.time)
            case Span(name=name) if name in CHUNKS:
                first, last = numbers(event.tag.partition(":")[::2])
                what, lane = CHUNKS.index(name), self.lane(event.lane)
                self.chunks.append(lane, event.start, event.time, first, last, what)
            case Span(name="step"):
                counts = dict(part.partition("=")[::2] for part in event.tag.split())
                kinds = ("decode", "prefill", "threads")
                rows = numbers([counts.get(kind, "0") for kind in kinds])
                self.steps.append(event.start, event.time, *rows)
            case Branch():
                self._branch(event)
            case Move() if event.target in self.fleet and event.tag in self.lanes:
                self._sent(event)
            case Opened():
                self._fleet(event.facts)

    def _fleet(self, facts: dict[str, Any]) -> None:
        """The replicas that a header names."""
        names, roles = facts.get("fleet"), facts.get("roles")
        if isinstance(names, list) and isinstance(roles, list):
            differ = len({*map(str, roles)}) > 1
            pairs = zip(names, roles, strict=False)
            self.fleet = {str(name): f", {role}" if differ else "" for name, role in pairs}

    def _sent(self, event: Move) -> None:
        """A request, or its cache, came to a replica."""
        ends = (self.places.setdefault(n, len(self.places)) for n in (event.source, event.target))
        self.sent.append(self.lanes[event.tag], event.start, event.time, *ends, event.bytes)

    def _branch(self, event: Branch) -> None:
        lane = self.lane(event.thread)
        if event.parent:
            self.above.setdefault(lane, self.lane(event.parent))
        if lane in self.open:
            state, since = self.open.pop(lane)
            self.stretches.append(lane, state, since, event.time)
        if event.state in ENDS:
            self.ends[lane] = event.time, ENDS.index(event.state), event.why
        elif event.state in STATES:
            self.ends.pop(lane, None)  # its input went on
            self.open[lane] = STATES.index(event.state), event.time
            self.preempted += event.state in ("preempted", "swapped")

    def draw(self) -> dict[str, Any]:
        """The whole history so far."""
        count = len(self.lanes)
        ends = [self.ends.get(lane, (np.nan, 0, "")) for lane in range(count)]
        return {
            **self.named(),
            "above": np.array([self.above.get(i, -1) for i in range(count)], np.int32),
            "ended": np.array([when for when, _, _ in ends], np.float64),
            "outcome": np.array([how for _, how, _ in ends], np.uint8),
            "whys": [why for _, _, why in ends],
            "states": STATES,
            "outcomes": ENDS,
            **self._stretches(),
            **{f"chunk_{k}": self.chunks[k] for k in self.chunks.types},
            **{f"tick_{k}": self.ticks[k] for k in self.ticks.types},
            **{f"step_{k}": self.steps[k] for k in self.steps.types},
            **{f"sent_{k}": self.sent[k] for k in self.sent.types},
            "places": [name + self.fleet.get(name, "") for name in self.places],
            "figures": self._figures(),
            **running(self._running()),
        }

    def _running(self) -> dict[int, Running]:
        """The figures as they stood at each moment."""
        finished = [when for when, how, _ in self.ends.values() if how == 0]
        state, start = self.stretches["state"], self.stretches["start"]
        stop, since = self.stretches["stop"], [s for st, s in self.open.values() if st in LOST]
        waits = state == STATES.index("queued")
        return {
            0: counting(np.array(finished), of=len(self.lanes)),
            1: counting(self.ticks["time"]),
            2: mean(stop[waits], (stop - start)[waits], "s"),
            3: counting(np.append(start[np.isin(state, LOST)], since)),
        }

    def _stretches(self) -> dict[str, np.ndarray]:
        """Closed stretches, then those still open, which last until now."""
        opened = [(lane, state, since, self.now) for lane, (state, since) in self.open.items()]
        columns = zip(*opened, strict=True) if opened else ((),) * 4
        return {
            f"stretch_{name}": np.append(self.stretches[name], np.array(more, kind))
            for (name, kind), more in zip(self.stretches.types.items(), columns, strict=True)
        }

    def _figures(self) -> list[list[str]]:
        finished = sum(how == 0 for _, how, _ in self.ends.values())
        waits = self.stretches["state"] == STATES.index("queued")
        waited = (self.stretches["stop"] - self.stretches["start"])[waits]
        mean = float(waited.mean()) if len(waited) else float("nan")
        return [
            ["finished", f"{finished:,} of {len(self.lanes):,}"],
            ["tokens", f"{len(self.ticks):,}"],
            ["mean wait in queue", figure(mean, "s")],
            ["preemptions", f"{self.preempted:,}"],
        ]


def numbers(texts: Any) -> list[int]:
    """Whole numbers of `texts`; 0 for one that is none."""
    return [int(text) if text.isdigit() else 0 for text in texts]
