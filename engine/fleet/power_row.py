"""Row of replicas under one power budget: meters, readings, caps that come late, and the brake.

A device draws idle power always; above that, in proportion to the time in which it computes and to
that in which it reads memory. A lower clock stretches the computing part of each step and leaves
memory as fast: prompts slow down with it, answers hardly.
"""

from collections.abc import Callable, Sequence

import numpy as np

from engine.core.errors import BadInput
from engine.core.events import AnyEvent, Level, Mark
from engine.fleet.config import FleetConfig
from engine.fleet.power.power import FULL, Clocks, Power
from engine.fleet.replica import Replica
from engine.fleet.timeline import Timeline
from engine.hardware.device import Device
from engine.inference.executors.costs.modelled_executor import ModelledExecutor
from engine.inference.requests.step import Result, Step

POWER = "power"  # blob: rows of COLUMNS, one a reading
COLUMNS = ("time", "watts", "low", "high")


class Metered(ModelledExecutor):
    """One replica's executor: `clock` times its highest clock, and a meter of `ranks` devices."""

    def __init__(
        self, inner: ModelledExecutor, power: Power, device: Device, ranks: int, idle: float
    ) -> None:
        super().__init__(inner.facts, inner.cost, inner.choice, inner.host, inner.drafting)
        if device.tdp is None:
            raise BadInput(f"power: device {device.name}: its power is not known; choose another")
        self.tells_work = True  # power goes with it
        self.power, self.timeline = power, Timeline()
        self.computes = device.reached(inner.facts.dtype)  # flops a second of a device
        self.most, self.clock = device.tdp * ranks, 1.0
        self.idle = idle * self.most
        self.watts = self.joules = self._at = self._until = 0.0

    def execute(self, step: Step) -> Result:
        result = super().execute(step)
        result.seconds += self._slower(result.flops)
        self._works(result.seconds, result.seconds, result.flops, result.bytes)
        return result

    def decode_seconds(
        self, starts_B: np.ndarray, count: int, seen: int | None = None
    ) -> np.ndarray:
        seconds_K = super().decode_seconds(starts_B, count, seen)
        middle = self.cost.decode_shape(starts_B + count // 2, len(starts_B))
        _, flops, moved = self.cost.total(middle)
        seconds_K = seconds_K + self._slower(flops)
        whole = float(seconds_K.sum())
        self._works(whole, whole / count, flops, moved)
        return seconds_K

    def drawn(self, now: float) -> float:
        """Joules since it was last asked."""
        self._settle(now)
        joules, self.joules = self.joules, 0.0
        return joules

    def idles(self, since: float) -> bool:
        """Whether it has done nothing since then, and has nothing under way."""
        return self._until <= since

    def _slower(self, flops: float) -> float:
        """Seconds by which the clock stretches so much computing."""
        return flops / self.computes * (1 / self.clock - 1)

    def _works(self, whole: float, seconds: float, flops: float, moved: float) -> None:
        """For `whole` seconds from now, it does so much every `seconds`."""
        self._settle(self.timeline.now)
        computing = min(1.0, flops / self.computes / self.clock / seconds)
        reading = min(1.0 - computing, moved / self.cost.memory / seconds)
        drawing = computing + self.power.memory * reading
        if self.power.fault == "alike":
            drawing = 1.0
        above = drawing * self.clock**self.power.exponent
        self.watts = (self.most - self.idle) * above
        self._until = self.timeline.now + whole

    def _settle(self, now: float) -> None:
        if now > self._at:
            busy = max(0.0, min(now, self._until) - self._at)
            self.joules += self.idle * (now - self._at) + self.watts * busy
            self._at = now


class Row:
    """Reads the power of all `replicas`, and sets their clocks as its policy says."""

    def __init__(
        self, config: FleetConfig, replicas: Sequence[Replica], timeline: Timeline,
        emit: Callable[[AnyEvent], None],
    ) -> None:  # fmt: skip
        self.power, self.replicas, self.timeline, self.emit = (
            config.power, replicas, timeline, emit,
        )  # fmt: skip
        self.meters = [each.executor for each in replicas if isinstance(each.executor, Metered)]
        for meter in self.meters:
            meter.timeline = timeline
        self.low = [config.router.low_priority(each.number) for each in replicas]
        self.budget = config.power.budget * self.meters[0].most
        idle = sum(meter.idle for meter in self.meters)
        if self.budget < idle:  # no brake would ever be let go
            raise BadInput(
                f"power.budget: {self.budget:g} W are less than the {idle:g} W that the row draws "
                "idle; raise it, or lower idle_power"
            )
        self.asked = self.set = FULL
        self.braked = self.braking = False
        self.told: list[tuple[float, float, float, float]] = []
        self._last = 0.0  # reading
        timeline.at(0.0, self._reach, FULL)
        timeline.at(0.0, self._ask, 0.0)
        timeline.read(config.power.every, self._read)

    def _read(self) -> bool:
        """Whether the next readings find the same until something happens."""
        now, last, asked = self.timeline.now, self._last, self.asked
        since = self.power.every * max(1, round((now - last) / self.power.every))
        watts, self._last = sum(meter.drawn(now) for meter in self.meters) / since, now
        self.told.append((now, watts, *self.set))
        self.emit(Level(now, "row", "watts", watts))
        self.emit(Level(now, "budget", "watts", self.budget))
        if self.set == self.asked:  # what was asked for last has come
            self._ask(watts / self.budget)
        if watts > self.budget and not self.braking:
            self.braking = True
            self.timeline.at(now + self.power.brake_after, self._brake, True)
        same = self.asked == asked == self.set and not self.braking
        return same and all(meter.idles(last) for meter in self.meters)

    def _ask(self, share: float) -> None:
        wanted = self.power.clocks(share, self.asked)
        if wanted != self.asked:
            self.asked = wanted
            at_once = not self.told  # what holds from the start
            delay = 0.0 if at_once else self.power.delay
            self.timeline.at(self.timeline.now + delay, self._reach, wanted)

    def _reach(self, clocks: Clocks) -> None:
        """A cap reaches the devices."""
        self.set = clocks
        now = self.timeline.now
        self.emit(Level(now, "low priority", "clock", clocks.low))
        self.emit(Level(now, "high priority", "clock", clocks.high))
        self._apply()

    def _brake(self, on: bool) -> None:
        now, self.braked = self.timeline.now, on
        if on:
            self.emit(Mark(now, "row", "brake", "above its budget: every clock is cut"))
            self.timeline.at(now + self.power.brake_for, self._brake, False)
        else:
            self.braking = False
        self._apply()

    def _apply(self) -> None:
        for replica, meter, low in zip(self.replicas, self.meters, self.low, strict=True):
            clock = self.set.low if low else self.set.high
            clock = min(clock, self.power.brake_clock) if self.braked else clock
            if clock != meter.clock:
                replica.settle()
                meter.clock = clock
