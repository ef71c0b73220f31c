"""Fold of `Move` events into traffic: for each pair of ends the bytes, messages and time so far.

The frame is the state at the cursor. Links with the most bytes come first, and the busiest are sent
where there are very many.
"""

from typing import Any

import numpy as np

from engine.core.events import AnyEvent, Level, Move, Opened
from widgets.canvas.fold import CanvasFold
from widgets.canvas.owner_marks import owner_mark
from widgets.theme import figure
from widgets.views.schedule.lanes import in_order
from widgets.views.topology.links import USE, Links

QUESTION = "What travels between whom?"
EMPTY = "Nothing has been sent yet. Start a run of several ranks or devices: its links appear here."
MOST_ENDS = 512  # rows of the matrix
MOST_LINKS = 20_000  # sent to the browser


class Topology(CanvasFold):
    """Sums by (source, target): bytes, messages, seconds in which something was under way."""

    question, empty = QUESTION, EMPTY
    own = ("ends", "links", "uses")
    totals = ("sent so far",)

    def __init__(self) -> None:
        super().__init__()
        self.ends: dict[str, int] = {}
        self.links: dict[tuple[int, int], tuple[float, int, float, float]] = {}
        self.uses = Links()

    def take(self, event: AnyEvent) -> None:
        if type(event) is Move:
            self._move(event)
        elif type(event) is Level and event.name == USE:
            self.uses.take(event)
        elif type(event) is Opened:
            self.uses.open(event.facts.get("links"))
            lanes = event.facts.get("lanes")
            for lane in lanes if isinstance(lanes, list) else ():
                if str(lane).startswith("rank "):  # those who send nothing are there, too
                    self._end(str(lane))

    def _end(self, name: str) -> int:
        return self.ends.setdefault(name, len(self.ends))

    def _move(self, move: Move) -> None:
        pair = self._end(move.source), self._end(move.target)
        size, count, busy, until = self.links.get(pair, (0.0, 0, 0.0, -np.inf))
        # Moves come in the order of their ends: what overlaps the one before is counted once.
        more = max(0.0, move.time - max(move.start, until))
        until = max(until, move.time)
        self.links[pair] = (size + move.bytes, count + 1, busy + more, until)

    def draw(self) -> dict[str, Any]:
        names = list(self.ends)
        order = in_order(names)[:MOST_ENDS]
        place = {end: row for row, end in enumerate(order)}
        rows = [
            (place[a], place[b], *told[:3])
            for (a, b), told in self.links.items()
            if a in place and b in place
        ]
        rows.sort(key=lambda row: -row[2])
        looks = [owner_mark(names[end]) for end in order]
        sent = np.array(rows[:MOST_LINKS], np.float64).reshape(-1, 5)
        return {
            "any": bool(self.links),
            "names": [names[end] for end in order],
            "hue": np.array([hue for hue, _ in looks], np.uint8),
            "source": sent[:, 0].astype(np.uint16),
            "target": sent[:, 1].astype(np.uint16),
            "bytes": sent[:, 2],
            "count": sent[:, 3].astype(np.uint32),
            "busy": sent[:, 4],
            "left_out": len(names) - len(order),
            **self.uses.frame(self.now),
            "figures": self._figures(names),
        }

    def _figures(self, names: list[str]) -> list[list[str]]:
        if not self.links:
            return []
        whole = sum(told[0] for told in self.links.values())
        (source, target), most = max(self.links.items(), key=lambda item: item[1][0])
        found = [
            ["sent so far", figure(whole, "B")],
            ["pairs that talk" if self.uses.number else "links in use", figure(len(self.links))],
            [f"most: {names[source]} to {names[target]}", figure(most[0], "B")],
        ]
        found += self.uses.figures(self.now)
        if most[2] > 0:
            found.append(["reached on it", figure(most[0] / most[2], "B/s")])
        return found
