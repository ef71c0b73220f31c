"""Fold of a fleet's run into its replicas: who waits and runs where, cache, work, what was sent.

The header's facts name the replicas (`fleet`), their `roles` and `max_running`; requests are moved
from the router to replicas, and between these, by `Move` events tagged with the request's id.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from engine.core.events import AnyEvent, Branch, Level, Mark, Move, Opened, Span
from widgets.canvas.fold import CanvasFold
from widgets.theme import figure

QUESTION = "Which replicas have work, and what travels between them?"
EMPTY = "No fleet yet. Start a run of several replicas: each is a tile here."
RECENT = 48  # moves shown, the newest
GONE = ("finished", "rejected", "aborted")


class Replica:
    """What is known of one: requests that wait and run, pages, and seconds of its steps."""

    def __init__(self) -> None:
        self.waiting: dict[str, None] = {}
        self.running: dict[str, None] = {}
        self.used = self.cached = self.busy = self.asked = self.found = 0.0
        self.served = 0  # requests that it had and has no more
        self.dead = False

    def copy(self) -> "Replica":
        other = Replica()
        other.__dict__.update(self.__dict__)
        other.waiting, other.running = self.waiting.copy(), self.running.copy()
        return other


class Replicas(dict[str, Replica]):
    """Replicas by name; a copy shares none of them."""

    def copy(self) -> "Replicas":
        return Replicas({name: each.copy() for name, each in self.items()})


class Fleet(CanvasFold):
    """Where each request is, and what each replica has done so far."""

    question, empty = QUESTION, EMPTY
    own = ("replicas", "place", "moves", "fresh")
    totals = ("over",)

    def __init__(self) -> None:
        super().__init__()
        self.replicas = Replicas()
        self.place: dict[str, str] = {}  # of a request: the replica that has it
        self.fresh: dict[str, int] = {}  # of one whose prompt is not begun: its tokens
        self.moves: list[tuple[float, str, str]] = []
        self.roles: list[str] = []
        self.power: list[list[float]] = []
        self.pages = self.most = 0
        self.thinned = False
        self.every = 1  # one request in so many is recorded
        self.over = 0
        self.ran = self.queued = 0  # requests that run and wait now, of all replicas
        self.most_ran = self.most_queued = 0  # and at most, so far

    def take(self, event: AnyEvent) -> None:
        kind = type(event)
        if kind is Branch:
            self._counted(self._branch, event, self.place.get(event.thread, ""))  # type: ignore[union-attr]
        elif kind is Move:
            ends = self.place.get(event.tag, ""), event.target  # type: ignore[union-attr]
            self._counted(self._move, event, *ends)
        elif kind is Level:
            self._level(event)  # type: ignore[arg-type]
        elif kind is Span:
            self._span(event)  # type: ignore[arg-type]
        elif kind is Mark and event.lane in self.replicas:  # type: ignore[union-attr]
            self._mark(event)  # type: ignore[arg-type]
        elif kind is Opened:
            self._open(event.facts)  # type: ignore[union-attr]

    def _counted(self, act: Callable[[Any], None], event: AnyEvent, *names: str) -> None:
        """Do what changes the requests of these replicas alone, and count all that run and wait."""
        touched = [self.replicas[name] for name in {*names} if name in self.replicas]
        self.ran -= sum(len(each.running) for each in touched)
        self.queued -= sum(len(each.waiting) for each in touched)
        act(event)
        self.ran += sum(len(each.running) for each in touched)
        self.queued += sum(len(each.waiting) for each in touched)
        self.most_ran = max(self.most_ran, self.ran)
        self.most_queued = max(self.most_queued, self.queued)

    def _open(self, facts: dict[str, Any]) -> None:
        names = facts.get("fleet")
        if isinstance(names, list):
            self.replicas = Replicas({str(name): Replica() for name in names})
            self.roles = [str(role) for role in facts.get("roles", [])]
            self.power = list(facts.get("power", []))
            self.pages = int(facts.get("pages", 0))
            self.most = int(facts.get("max_running", 0))
            self.thinned = bool(facts.get("thinned"))
            self.every = int(facts.get("record_every", 1))

    def _move(self, event: Move) -> None:
        if event.target not in self.replicas:
            return
        before = self.replicas.get(self.place.get(event.tag, ""))
        # Prefilled there; what still waits was served by nobody when another replica takes it.
        self._leaves(event.tag, before is not None and event.tag in before.running)
        here = self.replicas[event.target]
        here.waiting[event.tag] = None
        self.place[event.tag] = event.target
        if event.source not in self.replicas:
            self.fresh[event.tag] = round(event.bytes / 4)
        self.moves = [*self.moves[1 - RECENT :], (event.time, event.source, event.target)]

    def _leaves(self, request: str, served: bool = False) -> None:
        here = self.replicas.get(self.place.pop(request, ""))
        if here is not None:
            here.waiting.pop(request, None)
            here.running.pop(request, None)
            here.served += served

    def _branch(self, event: Branch) -> None:
        here = self.replicas.get(self.place.get(event.thread, ""))
        if here is None:
            return
        if event.state == "running":
            here.waiting.pop(event.thread, None)
            here.running[event.thread] = None
        elif event.state == "preempted":  # it waits again, here unless the replica is gone
            here.running.pop(event.thread, None)
            if event.why.endswith("died"):
                self._leaves(event.thread)
            else:
                here.waiting[event.thread] = None
        elif event.state in GONE:
            self._leaves(event.thread, event.state == "finished")
            self.over += 1

    def _level(self, event: Level) -> None:
        here = self.replicas.get(event.lane)
        if here is not None and event.name == "pages_used":
            here.used = event.value
        elif here is not None and event.name == "pages_cached":
            here.cached = event.value

    def _span(self, event: Span) -> None:
        here = self.replicas.get(event.lane)
        if here is not None and event.name == "step":
            here.busy += event.time - event.start
        elif event.name == "prefill" and event.lane in self.fresh:
            at = self.replicas.get(self.place.get(event.lane, ""))
            tokens = self.fresh.pop(event.lane)
            if at is not None:
                at.asked += tokens
                at.found += int(event.tag.partition(":")[0])

    def _mark(self, event: Mark) -> None:
        if event.name in ("died", "stopped", "back"):
            self.replicas[event.lane].dead = event.name != "back"

    def draw(self) -> dict[str, Any]:
        all_of, names = list(self.replicas.values()), list(self.replicas)
        number = {name: place for place, name in enumerate(names)}
        pages, now = max(1, self.pages), max(self.now, 1e-12)
        busy = np.array([each.busy / now for each in all_of], np.float32)
        power = np.array(self.power, np.float64).reshape(-1, 2)
        powered = len(power) > 0
        watts = power[:, 0] + (power[:, 1] - power[:, 0]) * busy if powered else np.zeros(0)
        return {
            "any": bool(names),
            "names": names,
            "roles": self.roles,
            "most": self.most,
            "thinned": self.thinned,
            "every": self.every,
            "running": np.array([len(each.running) for each in all_of], np.uint32),
            "waiting": np.array([len(each.waiting) for each in all_of], np.uint32),
            "served": np.array([each.served for each in all_of], np.uint32),
            "used": np.array([each.used / pages for each in all_of], np.float32),
            "cached": np.array([each.cached / pages for each in all_of], np.float32),
            "hits": np.array(
                [each.found / each.asked if each.asked else 0.0 for each in all_of], np.float32
            ),
            "busy": busy,
            "watts": np.asarray(watts, np.float32),
            "powered": powered,
            "dead": np.array([each.dead for each in all_of], np.uint8),
            "sent_from": np.array([number.get(m[1], -1) for m in self.moves], np.int32),
            "sent_to": np.array([number.get(m[2], -1) for m in self.moves], np.int32),
            "sent_at": np.array([m[0] for m in self.moves], np.float64),
            "figures": self._figures(all_of),
        }

    def _figures(self, all_of: list[Replica]) -> list[list[str]]:
        if not all_of:
            return []
        alive = sum(not each.dead for each in all_of)
        some = [["recorded", f"one request in {self.every:,}"]] if self.every > 1 else []
        return [
            *some,
            [_most("running", self.ran, self.most_ran), figure(self.ran)],
            [_most("waiting", self.queued, self.most_queued), figure(self.queued)],
            ["over", figure(self.over)],
            ["replicas alive", f"{alive} of {len(all_of)}"],
        ]


def _most(label: str, now: int, most: int) -> str:
    """The label of what is counted now, with the most so far where that was more."""
    return f"{label}, {figure(most)} at most" if most > now else label
