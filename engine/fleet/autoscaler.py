"""Autoscaler of a fleet: starts, drains and stops replicas as its policy wants, and counts their
paid time."""

from collections import deque
from collections.abc import Callable, Sequence, Sized
from typing import Literal, TypeAlias

from engine.core.events import AnyEvent, Level, Mark
from engine.fleet.replica import Replica
from engine.fleet.routers.router import Load
from engine.fleet.scaling.scaling import Elastic, Scaling, Seen
from engine.fleet.timeline import Timeline

State: TypeAlias = Literal["off", "starting", "on", "draining"]


class Autoscaler:
    """`under_way`: requests that are not over; `changed` hears that others take them now."""

    def __init__(
        self, scaling: Scaling, replicas: Sequence[Replica], timeline: Timeline,
        under_way: Sized, emit: Callable[[AnyEvent], None], changed: Callable[[], None],
    ) -> None:  # fmt: skip
        self.replicas, self.timeline, self.under_way = replicas, timeline, under_way
        self.emit, self.changed = emit, changed
        self.states: list[State] = ["on"] * len(replicas)
        self.paid = [0.0] * len(replicas)  # seconds of those that are off again
        self._since = [0.0] * len(replicas)  # when each began to be paid for
        self._wanted: deque[tuple[float, int]] = deque()
        self._busy = 0.0
        self.scaling = scaling if isinstance(scaling, Elastic) else None
        if self.scaling is not None:
            for replica in replicas[max(self.scaling.first, self.scaling.least) :]:
                self.states[replica.number], replica.load.alive = "off", False
            timeline.at(0.0, self._tell_first)
            scaling = self.scaling
            timeline.read(scaling.every, lambda: self._read(scaling))

    def serving(self) -> list[Load]:
        """Loads of replicas that take requests."""
        each = zip(self.replicas, self.states, strict=True)
        return [r.load for r, state in each if state == "on" and r.load.alive]

    def seconds(self, until: float) -> list[float]:
        """Paid time of each replica."""
        return [
            paid + (max(0.0, until - since) if state != "off" else 0.0)
            for paid, since, state in zip(self.paid, self._since, self.states, strict=True)
        ]

    def back(self, number: int) -> None:
        """A replica that died is there again, its cache empty; one that was stopped stays so."""
        if self.states[number] != "off":
            self._serves(number, "back, cache empty")

    def _serves(self, number: int, text: str) -> None:
        self.replicas[number].revive()
        self.emit(Mark(self.timeline.now, self.replicas[number].name, "back", text))
        self.changed()

    def _tell_first(self) -> None:
        for number, state in enumerate(self.states):
            if state == "off":
                self.emit(Mark(0.0, self.replicas[number].name, "stopped", "not started yet"))
        self._tell()

    def _tell(self) -> None:
        self.emit(Level(self.timeline.now, "fleet", "replicas", float(len(self.serving()))))

    def _numbers(self, *states: State) -> list[int]:
        return [number for number, state in enumerate(self.states) if state in states]

    def _read(self, scaling: Elastic) -> bool:
        """Whether the next readings find the same until something happens."""
        now = self.timeline.now
        for number in self._numbers("draining"):
            if not self.replicas[number].given:
                self._off(number)
        wanted = min(max(scaling.wanted(self._seen(scaling)), scaling.least), len(self.replicas))
        self._wanted.append((now, wanted))
        while self._wanted[0][0] < now - scaling.cooldown:
            self._wanted.popleft()
        have = len(self.serving()) + len(self._numbers("starting"))
        keep = max(count for _, count in self._wanted)
        if wanted > have:
            self._grow(wanted - have, scaling.startup)
        elif keep < have:
            self._shrink(have - keep)
        self._tell()
        settled = all(count == have for _, count in self._wanted)
        return settled and not self.under_way and not self._numbers("starting", "draining")

    def _seen(self, scaling: Elastic) -> Seen:
        for replica in self.replicas:
            replica.settle()
        busy = sum(replica.busy for replica in self.replicas)
        since, self._busy = busy - self._busy, busy
        serving = len(self.serving())
        share = min(1.0, since / scaling.every / max(serving, 1))
        starting = len(self._numbers("starting"))
        return Seen(self.timeline.now, serving, starting, len(self.under_way), share)

    def _grow(self, count: int, startup: float) -> None:
        """Those that drain take requests again, others start."""
        now, stays = self.timeline.now, self._numbers("draining")[:count]
        for number in stays:
            self.states[number] = "on"
        if stays:
            self.changed()
        for number in self._numbers("off")[: count - len(stays)]:
            self.states[number], self._since[number] = "starting", now
            self.emit(Mark(now, self.replicas[number].name, "starts", f"serves in {startup:g} s"))
            self.timeline.at(now + startup, self._started, number, now)

    def _started(self, number: int, since: float) -> None:
        if self.states[number] == "starting" and self._since[number] == since:
            self.states[number] = "on"
            self._serves(number, "serves, cache empty")
            self._tell()

    def _shrink(self, count: int) -> None:
        """Those that start are given up first, then the ones with the fewest requests."""
        given_up = self._numbers("starting")[::-1][:count]
        for number in given_up:
            self._off(number)
        loads = sorted(self.serving(), key=lambda load: (load.requests, -load.number))
        leaving = loads[: min(count - len(given_up), len(loads) - 1)]
        for load in leaving:
            self.states[load.number] = "draining"
        self.changed()
        for load in leaving:
            if not self.replicas[load.number].given:
                self._off(load.number)

    def _off(self, number: int) -> None:
        now, replica = self.timeline.now, self.replicas[number]
        self.paid[number] += now - self._since[number]
        self.states[number] = "off"
        replica.die()
        self.emit(Mark(now, replica.name, "stopped", f"{replica.name} stopped, empty"))
