"""Instances of jobs for one machine: drawn ones, and those that adversaries of an order make."""

from abc import abstractmethod
from dataclasses import replace
from typing import Literal

import numpy as np

from engine.core.clock import VirtualClock
from engine.core.config import Policy, knob
from engine.fleet.flow_time.orders import Job, Order, play

LEFT_OVER = 0.01  # of a second, by which the adversary's operations are longer than a test


class Instance(Policy):
    """Jobs by release time."""

    folder = "engine.fleet.flow_time"
    jobs: int = knob(40, "Jobs", low=1, high=100_000, log=True)

    @abstractmethod
    def made(self, random: np.random.Generator) -> list[Job]:
        """The jobs, by release time."""

    def against(self, order: Order, random: np.random.Generator) -> list[Job]:
        """The jobs that `order` is given: the same for each, but of an adversary that adapts."""
        return self.made(random)


class Drawn(Instance):
    """Poisson arrivals; operations of log-normal sizes around a job's own scale."""

    kind: Literal["drawn"] = "drawn"
    operations: int = knob(4, "Of a job at most; each number as likely", low=1, high=1000)
    load: float = knob(
        0.9,
        "Work that arrives in a second",
        low=0.01,
        high=10.0,
        unit="s",
        called="Load, work a second",
    )
    spread: float = knob(
        1.0, "Standard deviation of a size's logarithm", low=0.0, high=4.0, called="Spread of sizes"
    )

    def made(self, random: np.random.Generator) -> list[Job]:
        counts = random.integers(1, self.operations + 1, self.jobs)
        sizes = [np.exp(self.spread * random.standard_normal(count)) for count in counts]
        work = float(np.mean([each.sum() for each in sizes]))
        times = np.cumsum(random.exponential(work / self.load, self.jobs))
        return [
            Job(number, float(time), tuple(each.tolist()))
            for number, (time, each) in enumerate(zip(times, sizes, strict=True))
        ]


class Tested(Instance):
    """Uniform obligatory tests: one second tells what a job needs more, much or nothing."""

    kind: Literal["tested"] = "tested"
    load: float = knob(
        0.9,
        "Work that arrives in a second; 0: all at once",
        low=0.0,
        high=10.0,
        called="Load, work a second",
    )
    nothing: float = knob(0.5, "Share of jobs that need nothing more", low=0.0, high=1.0)
    spread: float = knob(
        1.0, "Of the others' logarithm of a size", low=0.0, high=4.0, called="Spread of sizes"
    )

    def made(self, random: np.random.Generator) -> list[Job]:
        more = np.exp(self.spread * random.standard_normal(self.jobs))
        more *= random.random(self.jobs) >= self.nothing
        apart = (1 + float(more.mean())) / self.load if self.load else 0.0
        times = np.cumsum(random.exponential(1.0, self.jobs)) * apart
        return [
            Job(number, float(time), (1.0, float(size)))
            for number, (time, size) in enumerate(zip(times, more, strict=True))
        ]


class Unlucky(Instance):
    """The adversary of tests: all at once, none short after its test, then a stream of short jobs.

    Whoever tests all has as many left as came, where half could be done; the stream keeps it so.
    Whoever does what it has tested leaves others untested, and where the adversary adapts those
    need nothing more: of so many, and of half the rest, all could be done. Either way twice as
    many are left as had to be. No order that knows no more than it may can tell before.
    """

    kind: Literal["unlucky"] = "unlucky"
    stream: float = knob(20.0, "Short jobs for each of the first", low=0.0, high=1e4)
    adapts: bool = knob(False, "Jobs that the order leaves untested need nothing after their test")

    def made(self, random: np.random.Generator) -> list[Job]:
        many = self.jobs
        known = [Job(number, 0.0, (1.0, 1.0 + LEFT_OVER)) for number in range(many)]
        short = range(round(self.stream * many))
        return known + [Job(many + n, float(many + n), (1.0, 0.0)) for n in short]

    def against(self, order: Order, random: np.random.Generator) -> list[Job]:
        jobs = self.made(random)
        if not self.adapts:
            return jobs
        rehearsed = [replace(job) for job in jobs[: self.jobs]]
        play(rehearsed, order, VirtualClock(), stop=float(self.jobs))  # until the stream begins
        for job, seen in zip(jobs, rehearsed, strict=False):
            if seen.at == 0:
                job.operations = (1.0, 0.0)
        return jobs


class Bait(Instance):
    """The adversary of operations: long jobs that begin short, then a stream of short ones.

    An order that goes by a job's first operation holds the stream up behind what follows it.
    """

    kind: Literal["bait"] = "bait"
    operations: int = knob(4, "Of each long job", low=2, high=1000)
    long: float = knob(200.0, "Last operation of a long job", low=1.0, high=1e6, unit="s")

    def made(self, random: np.random.Generator) -> list[Job]:
        baits = max(1, self.jobs // 10)
        begin = (0.1,) * (self.operations - 1)
        long = [Job(number, 0.0, (*begin, self.long)) for number in range(baits)]
        return long + [
            Job(number, 1.0 + 1.2 * (number - baits), (1.0,)) for number in range(baits, self.jobs)
        ]
